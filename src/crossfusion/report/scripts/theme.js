// The switch between light and dark; it starts as the reader's system has it.
function theme() {
  const button = document.getElementById('theme');
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const say = () => {
    button.textContent = dark() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', `Switch to ${dark() ? 'light' : 'dark'} colors`);
  };
  button.hidden = false;
  button.removeAttribute('aria-pressed');
  button.addEventListener('click', () => { root.dataset.theme = dark() ? 'light' : 'dark'; say(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', say);
  say();
}
