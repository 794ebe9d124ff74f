// Requests to Azure Blob Storage, signed with the key of the account (Shared Key).
// node azure_blob.js PORT ACCOUNT CONTAINER create|list|put [BLOB], with the content on stdin.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');

const [port, account, container, command, blob] = process.argv.slice(2);
const key = Buffer.from(process.env.AZURE_STORAGE_ACCOUNT_KEY, 'base64');

function send(method, path, query, headers, content) {
  headers = { 'x-ms-date': new Date().toUTCString(), 'x-ms-version': '2021-08-06', ...headers };
  const own = Object.keys(headers).sort().map((name) => `${name}:${headers[name]}\n`).join('');
  const parameters = Object.keys(query).sort().map((name) => `\n${name}:${query[name]}`).join('');
  const text =
    `${method}\n\n\n${content.length || ''}\n\n\n\n\n\n\n\n\n${own}/${account}${path}${parameters}`;
  const signature = crypto.createHmac('sha256', key).update(text).digest('base64');
  headers.authorization = `SharedKey ${account}:${signature}`;
  headers['content-length'] = content.length;
  const target = `${path}?${new URLSearchParams(query)}`;
  return new Promise((resolve, reject) => {
    const request = http.request({ host: '127.0.0.1', port, method, path: target, headers });
    request.on('error', reject);
    request.on('response', (response) => {
      const parts = [];
      response.on('data', (part) => parts.push(part));
      response.on('end', () => {
        const body = Buffer.concat(parts).toString();
        if (response.statusCode < 300) resolve(body);
        else reject(new Error(`${method} ${target}: ${response.statusCode} ${body}`));
      });
    });
    request.end(content);
  });
}

async function main() {
  const folder = `/${account}/${container}`;
  const nothing = Buffer.alloc(0);
  if (command === 'create') {
    await send('PUT', folder, { restype: 'container' }, {}, nothing);
  } else if (command === 'put') {
    const headers = { 'x-ms-blob-type': 'BlockBlob' };
    await send('PUT', `${folder}/${encodeURI(blob)}`, {}, headers, fs.readFileSync(0));
  } else {
    const list = await send('GET', folder, { comp: 'list', restype: 'container' }, {}, nothing);
    const each = /<Name>(.*?)<\/Name>.*?<Content-Length>(\d+)<\/Content-Length>/gs;
    for (const [, name, size] of list.matchAll(each)) console.log(`${size} ${name}`);
  }
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
