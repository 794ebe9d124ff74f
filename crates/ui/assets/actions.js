// @ts-check
// Cancels and removes the run, after a confirmation.

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
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-action]") : null;
    if (!(button instanceof HTMLElement)) return;
    action = button.dataset.action ?? "";
    const isActive = button.dataset.active === "true";
    const isSchedule = button.dataset.schedule === "true";
    get("confirm-title").textContent = action === "cancel" ? `Cancel ${name}?` : `Remove ${name}?`;
    get("confirm-text").textContent = text(action, isActive, isSchedule);
    get("confirm-error").textContent = "";
    const what = isSchedule ? "schedule" : "run";
    yes.textContent = action === "cancel" ? `Cancel the ${what}` : `Remove the ${what}`;
    yes.disabled = false;
    dialog.showModal();
    get("confirm-no").focus();
  });
  get("confirm-no").addEventListener("click", () => dialog.close());
  yes.addEventListener("click", async () => {
    yes.disabled = true;
    const problem = await send(`${path}/${action}`);
    yes.disabled = false;
    get("confirm-error").textContent = problem;
    if (problem === "") dialog.close();
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
  if (action === "cancel") return "Its tasks are stopped. Its record, logs and outputs are kept.";
  const active = isActive ? "The run is still active: its tasks are stopped. " : "";
  return `${active}Its Jobs, pods, logs, outputs and code are deleted. This cannot be undone.`;
}

/**
 * Sends a change. Returns why it failed, or nothing.
 * @param {string} address
 */
async function send(address) {
  const token = document.querySelector("meta[name=csrf]")?.getAttribute("content") ?? "";
  const options = { method: "POST", headers: { "X-Longshore-Token": token } };
  const response = await fetch(address, options).catch(() => null);
  if (!response) return "`longshore ui` does not respond.";
  if (response.ok) return "";
  const type = response.headers.get("content-type") ?? "";
  return type.startsWith("text/plain") ? response.text() : `The request was refused (${response.status}).`;
}
