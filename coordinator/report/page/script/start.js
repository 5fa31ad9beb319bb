// start.js: connects the parts. The root element states for scripts that the page is ready.

document.querySelectorAll("table.sortable").forEach(makeSortable);
if (byId("toolbar")) {
  connectViewer();
  connectFilter(byId("toolbar"));
}
addEventListener("load", () => {
  const state = document.documentElement.dataset;
  state.imagesLoaded ??= 0;
  state.imagesBroken ??= 0;
  state.ready = "1";
});
