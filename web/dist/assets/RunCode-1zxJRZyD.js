import{r as e}from"./react-DafCcEqp.js";import{H as t,Mt as n,U as r,V as i,jt as a,vt as o}from"./index-D1U6vHXK.js";import{t as s}from"./CopyCode-BvCeaZ4W.js";function c(e){let t=[[`URL`,i(e.service)],[`Token`,`os.Getenv("ATELIER_TOKEN")`],...e.teamId?[[`TeamID`,i(e.teamId)]]:[]],n=[[`Tool`,i(e.toolId)],[`Inputs`,`inputs`],...e.count===void 0?[]:[[`Results`,String(e.count)]]];return`package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"atelier/client"
)

func main() {
	ctx := context.Background()
	service, err := client.New(client.Options{
${l(t,`		`)}	})
	if err != nil {
		log.Fatal(err)
	}

	inputs := ${u(r(e.inputs),`	`)}
	run, err := service.Runs.Create(ctx, client.RunRequest{
${l(n,`		`)}	})
	if err != nil {
		log.Fatal(err)
	}
	run, err = run.Wait(ctx, client.Watch{})
	if err != nil {
		log.Fatal(err)
	}

	fmt.Println(run.Status)
	for _, output := range run.Outputs {
		fmt.Println(*output.URL)
	}
}
`}function l(e,t){let n=Math.max(...e.map(([e])=>e.length));return e.map(([e,r])=>`${t}${e}:${` `.repeat(n-e.length+1)}${r},\n`).join(``)}function u(e,t){if(a(e))return`client.${e.kind===`LIBRARY_REF`?`LibraryInput`:`UploadInput`}(${i(e.id)})`;if(e==null)return`nil`;if(Array.isArray(e))return`[]any{${e.map(e=>u(e,t)).join(`, `)}}`;if(typeof e==`object`){let r=`${t}\t`,a=Object.entries(e).map(([e,t])=>[i(e),u(t,r)]);return a.length===0||n(e)?`map[string]any{${a.map(e=>e.join(`: `)).join(`, `)}}`:`map[string]any{\n${l(a,r)}${t}}`}return i(e)}function d(e){let n=e.count===void 0?``:`    num_results: ${e.count},\n`,a=JSON.stringify(r(e.inputs),null,2).replaceAll(`
`,`
    `);return`// Node 20 or newer, as an ES module (.mjs).
const api = ${i(`${e.service}/api/v2`)};
const team = ${i(t(e))};

async function call(method, path, body) {
  const response = await fetch(api + path + team, {
    method,
    headers: {
      Authorization: \`Bearer \${process.env.ATELIER_TOKEN}\`,
      'Content-Type': 'application/json',
      'Idempotency-Key': crypto.randomUUID(),
    },
    body: body && JSON.stringify(body),
  });
  const answer = await response.json();
  if (!response.ok) {
    throw new Error(answer.error.message);
  }
  return answer;
}

const tool = await call('GET', '/tools/${e.toolId}');
let run = await call('POST', '/generate', {
    tool_id: tool.id,
    tool_fields_hash: tool.tool_fields_hash,
    inputs: ${a},
${n}});
while (run.status === 'pending') {
  await new Promise((resolve) => setTimeout(resolve, run.retry_after_seconds * 1000));
  run = await call('GET', \`/generate/\${run.request_id}\`);
}

console.log(run.status, run.error ?? '');
for (const output of run.outputs) {
  console.log(output.url);
}
`}function f(e){let n=e.count===void 0?``:`    "num_results": ${e.count},\n`;return`import json
import os
import time
import urllib.request
import uuid

API = ${i(`${e.service}/api/v2`)}
TEAM = ${i(t(e))}


def call(method, path, body=None):
    request = urllib.request.Request(
        API + path + TEAM,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["ATELIER_TOKEN"],
            "Content-Type": "application/json",
            "Idempotency-Key": str(uuid.uuid4()),
        },
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)


tool = call("GET", "/tools/${e.toolId}")
run = call("POST", "/generate", {
    "tool_id": tool["id"],
    "tool_fields_hash": tool["tool_fields_hash"],
    "inputs": ${p(r(e.inputs),`    `)},
${n}})
while run["status"] == "pending":
    time.sleep(run["retry_after_seconds"])
    run = call("GET", "/generate/" + run["request_id"])

print(run["status"], run["error"] or "")
for output in run["outputs"]:
    print(output["url"])
`}function p(e,t){return e===!0?`True`:e===!1?`False`:e==null?`None`:Array.isArray(e)?`[${e.map(e=>p(e,t)).join(`, `)}]`:typeof e==`object`?m(e,t):i(e)}function m(e,t){let n=`${t}    `,r=Object.entries(e).map(([e,t])=>`${i(e)}: ${p(t,n)}`),a=`{${r.join(`, `)}}`;return a.length<70&&!a.includes(`
`)?a:`{\n${r.map(e=>`${n}${e},\n`).join(``)}${t}}`}function h(e){return/^[\w@%+=:,./-]+$/.test(e)?e:`'${e.replaceAll(`'`,`'\\''`)}'`}function g(e){let n={tool_id:e.toolId,tool_fields_hash:e.hash,inputs:r(e.inputs),...e.count===void 0?{}:{num_results:e.count}};return[`curl -sS ${h(`${e.service}/api/v2/generate${t(e)}`)} \\`,`  -H "Authorization: Bearer $ATELIER_TOKEN" \\`,`  -H 'Content-Type: application/json' \\`,`  -H "Idempotency-Key: $(date +%s)-$$" \\`,`  -d ${h(JSON.stringify(n,null,2))}`,``,`# The answer has a status_url. Read it with the same token until its status is no longer pending.`,``].join(`
`)}function _(e){let t=[`atelier`,`generate`,e.slug];for(let[n,i]of Object.entries(e.inputs))t.push(h(`${n}=${v(r(i))}`));return e.count!==void 0&&t.push(`--results`,String(e.count)),e.teamId&&t.push(`--team`,h(e.teamId)),t.push(`--service`,h(e.service)),`${t.join(` `)}\n`}function v(e){return a(e)?`${e.kind===`LIBRARY_REF`?`result`:`upload`}:${e.id}`:n(e)?`${e.width}x${e.height}`:Array.isArray(e)?e.map(v).join(`,`):String(e)}function y(e,t){switch(e){case`curl`:return g(t);case`go`:return c(t);case`python`:return f(t);case`javascript`:return d(t);case`shell`:return _(t)}}var b=e();function x({call:e,language:t}){return(0,b.jsx)(s,{text:y(t,e),label:o.codeFor(o.languages[t])})}export{x as default};