// A server with the part of Google Cloud Storage's XML API that clients of Longshore and its pods
// use. It checks the tokens and the signed URLs of a service account, whose key file it writes.
// node google_storage.js FOLDER BUCKET. Files in FOLDER: key.json, objects/KEY and
// uploads/ID/NUMBER, with encoded keys.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');

const [folder, bucket] = process.argv.slice(2);
const email = 'tests@project-of-tests.iam.gserviceaccount.com';
const keys = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
const objects = path.join(folder, 'objects');
const uploads = path.join(folder, 'uploads');
// A short page, so that clients request several.
const PAGE = 2;

fs.mkdirSync(objects);
fs.mkdirSync(uploads);
fs.writeFileSync(path.join(folder, 'key.json'), JSON.stringify({
  type: 'service_account',
  private_key: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }),
  private_key_id: 'key-of-tests',
  client_email: email,
}), { mode: 0o600 });

class Refusal extends Error {
  constructor(status, code, message) {
    super(message);
    Object.assign(this, { status, code });
  }
}

const isSigned = (text, signature) =>
  crypto.verify('RSA-SHA256', Buffer.from(text), keys.publicKey, signature);

// A JSON Web Token that the service account has signed itself.
function checkToken(header) {
  const token = /^Bearer (([\w-]+)\.([\w-]+))\.([\w-]+)$/.exec(header || '');
  if (!token) throw new Refusal(401, 'AuthenticationRequired', 'Authentication required.');
  const claims = JSON.parse(Buffer.from(token[3], 'base64url'));
  const valid = isSigned(token[1], Buffer.from(token[4], 'base64url')) && claims.iss === email
    && claims.exp * 1000 > Date.now() && claims.scope.endsWith('/auth/cloud-platform');
  if (!valid) throw new Refusal(401, 'InvalidSecurity', 'The provided security is not valid.');
}

// https://cloud.google.com/storage/docs/authentication/canonical-requests
function checkSignature(request, url) {
  const query = url.searchParams;
  const date = query.get('X-Goog-Date');
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date);
  const begin = Date.UTC(year, month - 1, day, hour, minute, second);
  const lifetime = Number(query.get('X-Goog-Expires'));
  if (!(lifetime <= 604800)) throw new Refusal(400, 'InvalidArgument', 'Too long.');
  if (Date.now() > begin + lifetime * 1000) {
    throw new Refusal(400, 'ExpiredToken', 'The provided token has expired.');
  }
  const [account, scope] = query.get('X-Goog-Credential').split(/\/(.*)/);
  const names = query.get('X-Goog-SignedHeaders');
  // Clients sign for the host of the service, also if they use another endpoint.
  const received = { ...request.headers, host: 'storage.googleapis.com' };
  const headers = names.split(';').map((name) => `${name}:${received[name]}\n`).join('');
  const pairs = [...query].filter(([name]) => name !== 'X-Goog-Signature');
  const rest = pairs.map((pair) => pair.map(encodeURIComponent).join('=')).sort().join('&');
  const canonical =
    [request.method, url.pathname, rest, headers, names, 'UNSIGNED-PAYLOAD'].join('\n');
  const hash = crypto.createHash('sha256').update(canonical).digest('hex');
  const text = ['GOOG4-RSA-SHA256', date, scope, hash].join('\n');
  const signature = Buffer.from(query.get('X-Goog-Signature'), 'hex');
  if (account !== email || !names.split(';').includes('host') || !isSigned(text, signature)) {
    throw new Refusal(403, 'SignatureDoesNotMatch', 'The signature does not match.');
  }
}

const escape = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
const etag = (content) => `"${crypto.createHash('md5').update(content).digest('hex')}"`;

function read(file, code) {
  try {
    return fs.readFileSync(file);
  } catch (error) {
    throw new Refusal(404, code, 'It does not exist.');
  }
}

function list(query) {
  const prefix = query.get('prefix') || '';
  const after = query.get('continuation-token') || '';
  const names = fs.readdirSync(objects).map(decodeURIComponent).sort();
  const found = names.filter((name) => name.startsWith(prefix) && name > after);
  const page = found.slice(0, PAGE);
  const contents = page.map((name) => {
    const file = path.join(objects, encodeURIComponent(name));
    const { size, mtime } = fs.statSync(file);
    return `<Contents><Key>${escape(name)}</Key><Size>${size}</Size>`
      + `<LastModified>${mtime.toISOString()}</LastModified>`
      + `<ETag>${etag(fs.readFileSync(file))}</ETag></Contents>`;
  });
  const more = found.length > page.length
    ? `<NextContinuationToken>${escape(page[PAGE - 1])}</NextContinuationToken>` : '';
  return { body: `<ListBucketResult>${contents.join('')}${more}</ListBucketResult>` };
}

// The parts of an upload, whose ETags the client repeats.
function complete(upload, file, text) {
  const parts = [...text.matchAll(/<Part>.*?<\/Part>/gs)].map(([part]) => {
    const [, number] = /<PartNumber>(\d+)<\/PartNumber>/.exec(part);
    const [, tag] = /<ETag>(.*?)<\/ETag>/.exec(part);
    const content = read(path.join(upload, number), 'InvalidPart');
    if (etag(content) !== tag.replace(/&quot;/g, '"')) {
      throw new Refusal(400, 'InvalidPart', 'A part has another ETag.');
    }
    return content;
  });
  if (parts.slice(0, -1).some((part) => part.length < 5 << 20)) {
    throw new Refusal(400, 'EntityTooSmall', 'A part is too small.');
  }
  const content = Buffer.concat(parts);
  fs.writeFileSync(file, content);
  fs.rmSync(upload, { recursive: true });
  const body = `<CompleteMultipartUploadResult><ETag>${escape(etag(content))}</ETag>`;
  return { body: `${body}</CompleteMultipartUploadResult>` };
}

function download(request, file) {
  const content = read(file, 'NoSuchKey');
  const headers = {
    etag: etag(content),
    'last-modified': fs.statSync(file).mtime.toUTCString(),
  };
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range || '');
  if (!range) return { headers, body: content };
  const first = Number(range[1]);
  const end = range[2] ? Math.min(Number(range[2]) + 1, content.length) : content.length;
  if (first >= content.length) throw new Refusal(416, 'InvalidRange', 'Not satisfiable.');
  headers['content-range'] = `bytes ${first}-${end - 1}/${content.length}`;
  return { status: 206, headers, body: content.subarray(first, end) };
}

function answer(request, content) {
  const url = new URL(request.url, `http://${request.headers.host}`);
  const query = url.searchParams;
  if (query.has('X-Goog-Algorithm')) checkSignature(request, url);
  else checkToken(request.headers.authorization);
  const [, name, key] = /^\/([^/]*)\/?(.*)$/.exec(url.pathname).map(decodeURIComponent);
  if (name !== bucket) {
    throw new Refusal(404, 'NoSuchBucket', 'The specified bucket does not exist.');
  }
  if (!key) return list(query);
  const file = path.join(objects, encodeURIComponent(key));
  const upload = query.has('uploadId') && path.join(uploads, path.basename(query.get('uploadId')));
  if (upload && !fs.existsSync(upload)) {
    throw new Refusal(404, 'NoSuchUpload', 'The requested upload was not found.');
  }
  if (request.method === 'POST' && query.has('uploads')) {
    const id = crypto.randomUUID();
    fs.mkdirSync(path.join(uploads, id));
    const body = `<InitiateMultipartUploadResult><UploadId>${id}</UploadId>`;
    return { body: `${body}</InitiateMultipartUploadResult>` };
  }
  if (request.method === 'POST' && upload) return complete(upload, file, content.toString());
  if (request.method === 'PUT') {
    const target = upload ? path.join(upload, String(Number(query.get('partNumber')))) : file;
    fs.writeFileSync(target, content);
    return { headers: { etag: etag(content) } };
  }
  if (request.method === 'DELETE') {
    if (!upload) read(file, 'NoSuchKey');
    fs.rmSync(upload || file, { recursive: true });
    return { status: 204 };
  }
  return download(request, file);
}

function respond(request, response, content) {
  let result;
  try {
    result = answer(request, content);
  } catch (error) {
    const { status = 500, code = 'InternalError' } = error;
    if (status === 500) console.error(request.method, request.url.split('?')[0], error);
    const body = `<Error><Code>${code}</Code><Message>${escape(error.message)}</Message></Error>`;
    result = { status, body };
  }
  const body = Buffer.from(result.body || '');
  const headers = { 'content-length': body.length, ...result.headers };
  if (result.status === 204) delete headers['content-length'];
  response.writeHead(result.status || 200, headers);
  response.end(request.method === 'HEAD' ? undefined : body);
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => respond(request, response, Buffer.concat(parts)));
});
server.listen(0, '127.0.0.1', () => {
  console.log(`the server listens on http://127.0.0.1:${server.address().port}`);
});
