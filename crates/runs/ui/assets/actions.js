// @ts-check
// Cancels and removes the run, and retries a sweep, after a confirmation.

/** @type {Record<string, string>} */
const VERBS = { cancel: "Cancel", remove: "Remove", retry: "Retry" };

/** @param {string} id */
const get = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * @param {string} path The path of the run's page.
 * @param {string} name The name of the run.
 */
export function setUpActions(path, name) {
  const dialog = /** @type {HTMLDialogElement} */ (get("confirm"));
  const yes = /** @type {HTMLButtonElement} */ (get("confirm-yes"));
  let action = "";
  // Set after a refusal, because the run belongs to another user.
  let query = "";
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-action]") : null;
    if (!(button instanceof HTMLElement)) return;
    action = button.dataset.action ?? "";
    query = "";
    const isActive = button.dataset.active === "true";
    const isSchedule = button.dataset.schedule === "true";
    const verb = VERBS[action] ?? "";
    get("confirm-title").textContent = `${verb} ${name}?`;
    get("confirm-text").textContent = text(action, isActive, isSchedule);
    get("confirm-error").textContent = "";
    const what = isSchedule ? "schedule" : "run";
    yes.textContent = action === "retry" ? "Start the run" : `${verb} the ${what}`;
    yes.classList.toggle("danger", action !== "retry");
    get("confirm-no").textContent = action === "retry" ? "Do not start it" : "Keep it";
    yes.disabled = false;
    dialog.showModal();
    get("confirm-no").focus();
  });
  get("confirm-no").addEventListener("click", () => dialog.close());
  yes.addEventListener("click", async () => {
    yes.disabled = true;
    const { problem, text, isOthers } = await send(`${path}/${action}${query}`);
    yes.disabled = false;
    get("confirm-error").textContent = problem;
    if (isOthers) {
      query = "?all-users=true";
      yes.textContent = `${VERBS[action] ?? ""} the run of another user`;
    }
    if (problem !== "") return;
    dialog.close();
    // The path of the new run's page.
    if (action === "retry" && text.startsWith("/")) location.assign(text);
  });
}

/**
 * @param {string} action
 * @param {boolean} isActive
 * @param {boolean} isSchedule
 */
function text(action, isActive, isSchedule) {
  if (isSchedule) {
    return action === "cancel"
      ? "It creates no more runs, and its active runs are stopped. Their records are kept."
      : "All its runs are deleted, with their Jobs, pods, logs, outputs and code. This cannot be undone.";
  }
  if (action === "retry") return "A new run starts with the combinations that failed or were cancelled, with the same code, command and settings.";
  if (action === "cancel") return "Its tasks are stopped. Its record, logs and outputs are kept.";
  const active = isActive ? "The run is still active: its tasks are stopped. " : "";
  return `${active}Its Jobs, pods, logs, outputs and code are deleted. This cannot be undone.`;
}

/**
 * Sends a change. Returns why it failed, or the text of the response. `isOthers`: the run belongs to
 * another user, so the change has to be confirmed again.
 * @param {string} address
 */
async function send(address) {
  const token = document.querySelector("meta[name=csrf]")?.getAttribute("content") ?? "";
  const options = { method: "POST", headers: { "X-Longshore-Token": token } };
  const response = await fetch(address, options).catch(() => null);
  if (!response) return { problem: "`longshore ui` does not respond.", text: "", isOthers: false };
  const isText = response.headers.get("content-type")?.startsWith("text/plain") ?? false;
  const text = isText ? await response.text() : "";
  if (response.ok) return { problem: "", text, isOthers: false };
  const isOthers = response.status === 412;
  return { problem: text || `The request was refused (${response.status}).`, text: "", isOthers };
}
