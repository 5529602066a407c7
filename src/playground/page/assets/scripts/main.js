// The entry point: places the parts of the page, then starts the store.
//
//   store.js     the state of the page, fetched through api.js; notifies the others of changes
//   topbar.js, sidebar.js, channel.js, thread.js, modal.js     the parts of the page
//   messages.js → blocks.js → elements.js                      a message, its blocks and elements
//   mrkdwn.js, markdown.js, rich_text.js                       Slack's three text formats
//   trace.js     the actions of the bot in a thread
//   inbox.js     the mails of customers, if the playground has mail

import { startChannel } from './channel.js';
import { startInbox } from './inbox.js';
import { startModals } from './modal.js';
import { startSidebar } from './sidebar.js';
import { startThread } from './thread.js';
import { startTopbar } from './topbar.js';
import { on, start } from './store.js';
import { toast } from './toasts.js';

startTopbar(document.getElementById('topbar'));
startSidebar(document.getElementById('sidebar'));
startChannel(document.getElementById('channel'));
startInbox(document.getElementById('inbox'), document.getElementById('channel'));
startThread(document.getElementById('thread'));
startModals();

// The address after `#` is the state of the page, so this link moves the focus itself.
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  const place = document.querySelector('main:not([hidden])');
  (place.querySelector('textarea') ?? place).focus();
});
on('error', (error) => toast(error.message));
document.getElementById('shell').addEventListener('click', (event) => {
  if (!event.target.closest('#sidebar')) document.body.classList.remove('has-sidebar');
});
start().catch((error) => toast(error.message));
