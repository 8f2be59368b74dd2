// The conclusion as plain text, for a message or a protocol.
function conclusion() {
  const words = [data.title, '', ...data.headline];
  if (data.warnings.length) words.push('', ...data.warnings.map(each => `${each.serious ? 'Serious' : 'Note'}: ${each.title}. ${each.advice}`));
  words.push('', `crossfusion ${data.made.crossfusion}: ${data.made.command}`);
  return words.join('\n').replaceAll(/[\u2068\u2069]/g, '');
}

function copying() {
  const button = document.getElementById('copy');
  const said = done => { button.textContent = done ? 'Copied' : 'Copying failed'; setTimeout(() => { button.textContent = 'Copy as text'; }, 2000); };
  button.hidden = false;
  button.addEventListener('click', () => {
    if (navigator.clipboard) navigator.clipboard.writeText(conclusion()).then(() => said(true), () => said(copySelected()));
    else said(copySelected());
  });
}

// Where the clipboard is closed to scripts, as in a frame, a selection may still be copied.
function copySelected() {
  const box = make('textarea', { class: 'hidden', 'aria-hidden': 'true' });
  box.value = conclusion();
  document.body.append(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done;
}
