// SPDX-License-Identifier: Apache-2.0
// The official TypeScript clients list the tools of `autotune mcp` and call some; with the extension for tasks they get long work as one.
//
// usage: node client.mjs AUTOTUNE FOLDER PACKAGES    PACKAGES: where npm has installed @modelcontextprotocol/{client,ext-tasks,sdk}
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [autotune, folder, packages] = process.argv.slice(2);
const find = createRequire(join(packages, 'package.json'));
const load = async (name) => import(pathToFileURL(find.resolve(name)).href);

writeFileSync(join(folder, 'simulated.yaml'), `study: simulated
model: Qwen/Qwen3-8B
engine: vllm
hardware: h100-sxm
workloads: [chat]
preset: quick
objective: {maximize: total_tokens_per_second}
evaluator: {simulate: {}}
budget: {trials: 8}
`);

async function use(name, Client, Transport, era) {
  const client = new Client({ name: 'test', version: '1' }, era);
  await client.connect(new Transport({ command: autotune, args: ['mcp', '--directory', folder] }));
  const { tools } = await client.listTools();
  assert.equal(tools.length, 13);
  for (const tool of tools) assert.equal(tool.inputSchema.type, 'object', tool.name);
  const call = async (tool, args) => (await client.callTool({ name: tool, arguments: args })).structuredContent;
  assert.equal((await call('validate', { study: 'simulated.yaml' })).valid, true);
  const told = await call('start', { study: 'simulated.yaml', wait_seconds: 50 });
  assert.equal(told.state, 'done');
  assert.equal(told.trials.told, 8);
  assert.match((await call('recommend', { study: 'simulated' })).text, /exec vllm serve/);
  assert.equal((await call('validate', { study: '/etc/passwd' })).state, 'failed');
  await assert.rejects(client.callTool({ name: 'shell', arguments: { command: 'id' } }));
  const { contents } = await client.readResource({ uri: 'servetune://schema/study' });
  assert.ok(JSON.parse(contents[0].text).properties);
  await assert.rejects(client.readResource({ uri: 'file:///etc/passwd' }));
  await client.close();
  console.log(name, era ? 'the newest protocol' : 'with initialize', tools.length, 'tools');
}

/// A study as a task, to its end, and another that is cancelled. The client's own codec takes no tasks, so that their requests go past it.
async function useTasks(Client, Transport, { createTaskSessionFromClient, resultFromTaskOutcome }) {
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } });
  const transport = new Transport({ command: autotune, args: ['mcp', '--directory', folder] });
  await client.connect(transport);
  const waiting = new Map();
  const others = transport.onmessage;
  transport.onmessage = (message, more) => {
    const answered = waiting.get(message.id);
    if (answered === undefined) return others(message, more);
    waiting.delete(message.id);
    answered(message.error ? { kind: 'error', error: message.error } : { kind: 'result', result: message.result });
  };
  const rawDispatch = (request) => new Promise((answered, failed) => {
    const id = `task-${Math.random()}`;
    waiting.set(id, answered);
    transport.send({ jsonrpc: '2.0', ...request, id }).catch(failed);
  });
  const session = createTaskSessionFromClient(client, {
    endpointId: 'servetune', rawDispatch,
    v2RequestFraming: { protocolVersion: '2026-07-28', clientInfo: { name: 'test', version: '1' }, clientCapabilities: {} },
  });
  const started = async (directory) => session.callTool('start', { study: 'simulated.yaml', directory, trials: 60 });
  const execution = await started('as-task');
  assert.equal(execution.kind, 'task');
  const messages = [];
  const { outcome } = await execution.settle({ onEvent: (event) => messages.push(event.task?.statusMessage) });
  const told = resultFromTaskOutcome(outcome).structuredContent;
  assert.equal(told.state, 'done');
  assert.ok(told.trials.told >= 8 && told.headline, told);
  assert.ok(messages.some((one) => /trials told; so far: /.test(one ?? '')), messages);
  const other = await started('cancelled');
  await other.cancel();
  assert.equal((await other.result()).status, 'cancelled');
  const quick = await session.callTool('validate', { study: 'simulated.yaml' });
  assert.equal(quick.kind, 'immediate');
  await session.close();
  await client.close();
  console.log('@modelcontextprotocol/ext-tasks', messages.length, 'states of a task');
}

const first = [await load('@modelcontextprotocol/sdk/client/index.js'), await load('@modelcontextprotocol/sdk/client/stdio.js')];
await use('@modelcontextprotocol/sdk', first[0].Client, first[1].StdioClientTransport);
const second = [await load('@modelcontextprotocol/client'), await load('@modelcontextprotocol/client/stdio')];
await use('@modelcontextprotocol/client', second[0].Client, second[1].StdioClientTransport);
await use('@modelcontextprotocol/client', second[0].Client, second[1].StdioClientTransport, { versionNegotiation: { mode: 'auto' } });
const tasks = join(packages, 'node_modules/@modelcontextprotocol/ext-tasks/dist/client/index.js');  // it has no entry for `require.resolve`
if (existsSync(tasks)) await useTasks(second[0].Client, second[1].StdioClientTransport, await import(pathToFileURL(tasks).href));
else console.log('skipped: tasks, as npm has not installed @modelcontextprotocol/ext-tasks');
