// Sets light or dark before anything is drawn, so that the page does not flash. Not a module: it must run at once.
// "auto" follows the system; topbar.js offers the choice.
(() => {
  const chosen = localStorage.getItem('theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
})();
