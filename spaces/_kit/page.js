// What a page does that Gradio does not: it announces results, marks old ones, scrolls to the answer on a phone, and
// keeps hatchings.
(() => {
  const announced = document.createElement("div");
  announced.className = "tm-sr";
  announced.setAttribute("role", "status");
  let isAwaited = false;
  const begin = () => {
    // With a base, Plotly writes the URL of the page into its references to hatchings, which a new URL would break.
    document.querySelector("base")?.removeAttribute("href");
    document.body.append(announced);
    new MutationObserver(() => {
      const said = document.querySelector("#answer [data-said]");
      const isOld = said && document.body.classList.contains("tm-old");
      const text = (isOld ? "The input has changed since this was scored. " : "") + (said ? said.dataset.said : "");
      if (text !== announced.textContent) announced.textContent = text;
      const answer = document.querySelector("#answer .tm-answer, #answer .tm-error");
      if (isAwaited && answer && innerWidth < 900) answer.scrollIntoView({ block: "start" });
      if (answer) isAwaited = false;
    }).observe(document.body, { attributeFilter: ["class"], childList: true, subtree: true });
  };
  if (document.body) begin();
  else addEventListener("DOMContentLoaded", begin);

  addEventListener("input", (event) => {
    if (event.target.matches(".tm-input textarea")) document.body.classList.add("tm-old");
  }, true);
  addEventListener("click", (event) => {
    if (!event.target.closest(".tm-input button.primary, .tm-examples button")) return;
    document.body.classList.remove("tm-old");
    isAwaited = true;
  }, true);
})();
