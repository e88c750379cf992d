// SPDX-License-Identifier: Apache-2.0
// The official TypeScript clients list the tools of `autotune mcp`, call some, and see progress.
//
// usage: node client.mjs AUTOTUNE FOLDER PACKAGES    PACKAGES: where npm has installed @modelcontextprotocol/{client,sdk}
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
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

const first = [await load('@modelcontextprotocol/sdk/client/index.js'), await load('@modelcontextprotocol/sdk/client/stdio.js')];
await use('@modelcontextprotocol/sdk', first[0].Client, first[1].StdioClientTransport);
const second = [await load('@modelcontextprotocol/client'), await load('@modelcontextprotocol/client/stdio')];
await use('@modelcontextprotocol/client', second[0].Client, second[1].StdioClientTransport);
await use('@modelcontextprotocol/client', second[0].Client, second[1].StdioClientTransport, { versionNegotiation: { mode: 'auto' } });
