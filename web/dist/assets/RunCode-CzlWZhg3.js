import{r as e}from"./react-DafCcEqp.js";import{F as t,I as n,P as r,ft as i,nt as a,pt as o}from"./index-D3BPQ35z.js";import{t as s}from"./CopyCode-CVyOXLG2.js";function c(e){let t=[[`URL`,r(e.service)],[`Token`,`os.Getenv("ATELIER_TOKEN")`],...e.teamId?[[`TeamID`,r(e.teamId)]]:[]],i=[[`Tool`,r(e.toolId)],[`Inputs`,`inputs`],...e.count===void 0?[]:[[`Results`,String(e.count)]]];return`package main

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

	inputs := ${u(n(e.inputs),`	`)}
	run, err := service.Runs.Create(ctx, client.RunRequest{
${l(i,`		`)}	})
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
`}function l(e,t){let n=Math.max(...e.map(([e])=>e.length));return e.map(([e,r])=>`${t}${e}:${` `.repeat(n-e.length+1)}${r},\n`).join(``)}function u(e,t){if(i(e))return`client.${e.kind===`LIBRARY_REF`?`LibraryInput`:`UploadInput`}(${r(e.id)})`;if(e==null)return`nil`;if(Array.isArray(e))return`[]any{${e.map(e=>u(e,t)).join(`, `)}}`;if(typeof e==`object`){let n=`${t}\t`,i=Object.entries(e).map(([e,t])=>[r(e),u(t,n)]);return i.length===0||o(e)?`map[string]any{${i.map(e=>e.join(`: `)).join(`, `)}}`:`map[string]any{\n${l(i,n)}${t}}`}return r(e)}function d(e){let i=e.count===void 0?``:`    num_results: ${e.count},\n`,a=JSON.stringify(n(e.inputs),null,2).replaceAll(`
`,`
    `);return`// Node 20 or newer, as an ES module (.mjs).
const api = ${r(`${e.service}/api/v2`)};
const team = ${r(t(e))};

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
${i}});
while (run.status === 'pending') {
  await new Promise((resolve) => setTimeout(resolve, run.retry_after_seconds * 1000));
  run = await call('GET', \`/generate/\${run.request_id}\`);
}

console.log(run.status, run.error ?? '');
for (const output of run.outputs) {
  console.log(output.url);
}
`}function f(e){let i=e.count===void 0?``:`    "num_results": ${e.count},\n`;return`import json
import os
import time
import urllib.request
import uuid

API = ${r(`${e.service}/api/v2`)}
TEAM = ${r(t(e))}


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
    "inputs": ${p(n(e.inputs),`    `)},
${i}})
while run["status"] == "pending":
    time.sleep(run["retry_after_seconds"])
    run = call("GET", "/generate/" + run["request_id"])

print(run["status"], run["error"] or "")
for output in run["outputs"]:
    print(output["url"])
`}function p(e,t){return e===!0?`True`:e===!1?`False`:e==null?`None`:Array.isArray(e)?`[${e.map(e=>p(e,t)).join(`, `)}]`:typeof e==`object`?m(e,t):r(e)}function m(e,t){let n=`${t}    `,i=Object.entries(e).map(([e,t])=>`${r(e)}: ${p(t,n)}`),a=`{${i.join(`, `)}}`;return a.length<70&&!a.includes(`
`)?a:`{\n${i.map(e=>`${n}${e},\n`).join(``)}${t}}`}function h(e){return/^[\w@%+=:,./-]+$/.test(e)?e:`'${e.replaceAll(`'`,`'\\''`)}'`}function g(e){let r={tool_id:e.toolId,tool_fields_hash:e.hash,inputs:n(e.inputs),...e.count===void 0?{}:{num_results:e.count}};return[`curl -sS ${h(`${e.service}/api/v2/generate${t(e)}`)} \\`,`  -H "Authorization: Bearer $ATELIER_TOKEN" \\`,`  -H 'Content-Type: application/json' \\`,`  -H "Idempotency-Key: $(date +%s)-$$" \\`,`  -d ${h(JSON.stringify(r,null,2))}`,``,`# The answer has a status_url. Read it with the same token until its status is no longer pending.`,``].join(`
`)}function _(e){let t=[`atelier`,`generate`,e.slug];for(let[r,i]of Object.entries(e.inputs))t.push(h(`${r}=${v(n(i))}`));return e.count!==void 0&&t.push(`--results`,String(e.count)),e.teamId&&t.push(`--team`,h(e.teamId)),t.push(`--service`,h(e.service)),`${t.join(` `)}\n`}function v(e){return i(e)?`${e.kind===`LIBRARY_REF`?`result`:`upload`}:${e.id}`:o(e)?`${e.width}x${e.height}`:Array.isArray(e)?e.map(v).join(`,`):String(e)}function y(e,t){switch(e){case`curl`:return g(t);case`go`:return c(t);case`python`:return f(t);case`javascript`:return d(t);case`shell`:return _(t)}}var b=e();function x({call:e,language:t}){return(0,b.jsx)(s,{text:y(t,e),label:a.codeFor(a.languages[t])})}export{x as default};