// Begins here: gives each part of the page its place, then follows the workspace.
//
//   store.js     what is known, fetched through api.js; tells the others when it changes
//   topbar.js, sidebar.js, channel.js, thread.js, modal.js     the parts of the page
//   messages.js → blocks.js → elements.js                      a message, its blocks, what can be pressed
//   mrkdwn.js, markdown.js, rich_text.js                       the three ways Slack writes text
//   trace.js     what the bot did in a thread

import { startChannel } from './channel.js';
import { startModals } from './modal.js';
import { startSidebar } from './sidebar.js';
import { startThread } from './thread.js';
import { startTopbar } from './topbar.js';
import { on, start } from './store.js';
import { toast } from './toasts.js';

startTopbar(document.getElementById('topbar'));
startSidebar(document.getElementById('sidebar'));
startChannel(document.getElementById('channel'));
startThread(document.getElementById('thread'));
startModals();

on('error', (error) => toast(error.message));
document.getElementById('shell').addEventListener('click', (event) => {
  if (!event.target.closest('#sidebar')) document.body.classList.remove('has-sidebar');
});
start().catch((error) => toast(error.message));
