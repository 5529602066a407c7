// Sets the light or dark theme before the page is rendered, so that it does not flash. Not a
// module, since it must run at once. "auto" follows the system. The menu is in topbar.js.
(() => {
  const chosen = localStorage.getItem('theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
})();
