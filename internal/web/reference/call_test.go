package reference_test

import (
	"html"
	"regexp"
	"strings"
	"testing"
)

// withOperation makes a document that has one operation, in flow style.
func withOperation(operation string) []byte {
	return []byte(`
openapi: 3.1.0
info: {title: T, version: '1'}
servers: [{url: /v1}]
security: [{bearer: []}]
paths: {"/runs/{run_id}": ` + operation + `}
components:
  securitySchemes:
    bearer: {type: http, scheme: bearer}
    basic: {type: http, scheme: basic}
    key: {type: apiKey, in: header, name: X-Key}
    asked: {type: apiKey, in: query, name: key}
    cookie: {type: apiKey, in: cookie, name: sid}
  parameters:
    Run: {name: run_id, in: path, required: true, description: Of the run., schema: {type: string}}
  schemas:
    Run: {type: object, required: [prompt], properties: {prompt: {type: string}, seed: {type: integer}, id: {type: string, readOnly: true}}}
    Upload: {type: object, required: [file, kind], properties: {file: {contentMediaType: image/png}, kind: {enum: [photo]}}}
`)
}

var curlText = regexp.MustCompile(`(?s)aria-label="Request"><code>(.*?)</code>`)

func TestCurl(t *testing.T) {
	t.Parallel()
	const bearer = ` \
  -H "Authorization: Bearer $ATELIER_TOKEN"`
	for _, c := range []struct{ name, operation, want string }{
		{"a path variable", "{get: {parameters: [{$ref: '#/components/parameters/Run'}]}}", `curl "$ATELIER_URL/v1/runs/$RUN_ID"` + bearer},
		{"an example in the path", "{get: {parameters: [{name: run_id, in: path, required: true, example: a/b}]}}", `curl "$ATELIER_URL/v1/runs/a%2Fb"` + bearer},
		{"parameters of the path", "{parameters: [{name: n, in: query, required: true, schema: {type: integer}}], get: {}}", `curl "$ATELIER_URL/v1/runs/{run_id}?n=1"` + bearer},
		{"only what is required", "{get: {parameters: [{name: limit, in: query}, {name: Idempotency-Key, in: header, required: true}]}}", `curl "$ATELIER_URL/v1/runs/{run_id}" \
  -H "Idempotency-Key: $IDEMPOTENCY_KEY"` + bearer},
		{"no variable that every shell has", "{get: {parameters: [{name: path, in: query, required: true}]}}", `curl "$ATELIER_URL/v1/runs/{run_id}?path=$MY_PATH"` + bearer},
		{"no credential", "{delete: {security: []}}", `curl -X DELETE "$ATELIER_URL/v1/runs/{run_id}"`},
		{"a password", "{head: {security: [{basic: []}]}}", `curl --head "$ATELIER_URL/v1/runs/{run_id}" \
  -u "$ATELIER_USER:$ATELIER_PASSWORD"`},
		{"keys", "{get: {security: [{}, {key: [], asked: [], cookie: []}]}}", `curl "$ATELIER_URL/v1/runs/{run_id}?key=$ATELIER_TOKEN" \
  -H "X-Key: $ATELIER_TOKEN" \
  -b "sid=$ATELIER_TOKEN"`},
		{"JSON with what is required", "{post: {security: [], requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Run'}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -H 'Content-Type: application/json' \
  -d '{
  "prompt": "string"
}'`},
		{"an example with quotes", `{post: {security: [], requestBody: {content: {application/json: {example: "it's $5"}}}}}`, `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -H 'Content-Type: application/json' \
  -d '"it'\''s $5"'`},
		{"a form with a file", "{post: {security: [], requestBody: {content: {multipart/form-data: {schema: {allOf: [{$ref: '#/components/schemas/Upload'}]}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -F 'file=@file' \
  -F 'kind=photo'`},
		{"a form with a part of a type", "{post: {security: [], requestBody: {content: {multipart/form-data: {schema: {properties: {run: {$ref: '#/components/schemas/Run'}}}, encoding: {run: {contentType: application/json}}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -F 'run={"prompt": "string"};type=application/json'`},
		{"a form whose example names files", "{post: {security: [], requestBody: {content: {multipart/form-data: {schema: {properties: {files: {items: {contentMediaType: image/png}}}}, example: {files: [a.png, 'b;c.png']}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -F 'files=@a.png' \
  -F 'files=@"b;c.png"'`},
		{"a form whose schema names a file", "{post: {security: [], requestBody: {content: {multipart/form-data: {schema: {properties: {file: {contentMediaType: image/png}}, examples: [{file: a.png}]}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -F 'file=@a.png'`},
		{"a form that names no file", "{post: {security: [], requestBody: {content: {multipart/form-data: {schema: {properties: {file: {type: string, format: binary}}}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -F 'file=@file'`},
		{"a form whose example names no file", "{post: {security: [], requestBody: {content: {multipart/form-data: {schema: {properties: {files: {items: {contentMediaType: image/png}}}}, example: {files: []}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -F 'files=@files'`},
		{"a form with text that curl would read", `{post: {security: [], requestBody: {content: {multipart/form-data: {example: {a: "@x", b: "x;y \\ \"z\"", c: "x@y"}, schema: {properties: {a: {type: string}, b: {type: string}, c: {type: string}}}}}}}}`, `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -F 'a="@x"' \
  -F 'b="x;y \\ \"z\""' \
  -F 'c=x@y'`},
		{"a form", "{post: {security: [], requestBody: {content: {application/x-www-form-urlencoded: {schema: {$ref: '#/components/schemas/Run'}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  --data-urlencode 'prompt=string'`},
		{"bytes there and back", "{put: {security: [], requestBody: {content: {image/png: {}}}, responses: {'200': {content: {image/png: {}}}}}}", `curl -X PUT "$ATELIER_URL/v1/runs/{run_id}" \
  -H 'Content-Type: image/png' \
  --data-binary @file \
  --output answer`},
		{"bytes of any type", "{post: {security: [], requestBody: {content: {'*/*': {schema: {contentMediaType: application/octet-stream}}}}}}", `curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \
  -H "Content-Type: $CONTENT_TYPE" \
  --data-binary @file`},
		{"any type back", "{get: {security: [], responses: {'206': {content: {'*/*': {schema: {contentMediaType: application/octet-stream}}}}}}}", `curl "$ATELIER_URL/v1/runs/{run_id}" \
  --output answer`},
		{"a stream of events", "{get: {security: [], responses: {'200': {content: {text/event-stream: {schema: {type: string}}}}}}}", `curl "$ATELIER_URL/v1/runs/{run_id}" \
  --no-buffer`},
		{"a server at the root", "{get: {servers: [{url: /}], security: []}}", `curl "$ATELIER_URL/runs/{run_id}"`},
		{"a server elsewhere", "{servers: [{url: 'https://{where}.example.com/x/', variables: {where: {default: eu}}}], get: {security: []}}", `curl "https://eu.example.com/x/runs/{run_id}"`},
		{"a server at home", "{get: {servers: [{url: 'http://localhost:8080/x'}], security: []}}", `curl "$ATELIER_URL/x/runs/{run_id}"`},
		{"names that a shell would read", `{get: {security: [], parameters: [{name: "$(id)", in: header, required: true, example: "` + "`id`" + `"}]}}`, `curl "$ATELIER_URL/v1/runs/{run_id}" \
  -H "\$(id): ` + "\\`id\\`" + `"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := curlText.FindStringSubmatch(page(t, withOperation(c.operation)))
			if m == nil {
				t.Fatal("no request")
			}
			if got := html.UnescapeString(m[1]); got != c.want {
				t.Errorf("request =\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestOperationsInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, operation, want string }{
		{"method and full path", "{get: {summary: Get a run}}", "Get a run GET /v1/runs/{run_id}"},
		{"a name for the nameless", "{get: {}}", "GET /runs/{run_id} GET /v1/runs/{run_id}"},
		{"deprecated", "{get: {summary: Old, deprecated: true}}", "Old deprecated"},
		{"the document's credential", "{get: {}}", "Credential needed: bearer"},
		{"no credential", "{get: {security: []}}", "No credential needed"},
		{"several credentials", "{get: {security: [{bearer: [read]}, {key: [], basic: []}]}}", "Credential needed: bearer read or key + basic"},
		{"an optional credential", "{get: {security: [{}, {bearer: []}]}}", "Credential optional: bearer"},
		{"a parameter", "{get: {parameters: [{name: limit, in: query, required: true, description: How many., schema: {type: integer, maximum: 9}}]}}", "limit required integer query How many. at most 9"},
		{"the operation's parameter wins", "{parameters: [{name: a, in: query, description: Theirs.}], get: {parameters: [{name: a, in: query, description: Ours.}]}}", "Parameters a any query Ours."},
		{"words beside a reference", "{get: {parameters: [{$ref: '#/components/parameters/Run', description: Another one.}]}}", "run_id required string path Another one."},
		{"a list in the query", "{get: {parameters: [{name: a, in: query, schema: {type: array, items: {type: string}}}]}}", "repeat it for several"},
		{"a list between commas", "{get: {parameters: [{name: a, in: query, explode: false, schema: {type: array, items: {type: string}}}]}}", "several in one, between commas"},
		{"a parameter as JSON", "{get: {parameters: [{name: a, in: query, content: {application/json: {schema: {$ref: '#/components/schemas/Run'}}}}]}}", "a Run query written as application/json"},
		{"bodies", "{post: {requestBody: {required: true, description: What to do., content: {application/json: {schema: {$ref: '#/components/schemas/Run'}}, multipart/form-data: {schema: {$ref: '#/components/schemas/Upload'}, encoding: {file: {contentType: image/*}}}}}}}", "Request body required What to do. application/json Run multipart/form-data Upload part file as image/*"},
		{"a request for each type of body", "{post: {security: [], requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Run'}}, '*/*': {}}}}}", `Request application/json curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \ -H 'Content-Type: application/json' \ -d '{ "prompt": "string" }' Request */* curl -X POST "$ATELIER_URL/v1/runs/{run_id}" \ -H "Content-Type: $CONTENT_TYPE" \ --data-binary @file`},
		{"a request for the only type of body", "{post: {security: [], requestBody: {content: {image/png: {}}}}}", `Request curl -X POST`},
		{"events", `{get: {responses: {'200': {description: Events., content: {text/event-stream: {schema: {type: string}, example: "id: 1\nevent: done\n\n"}}}}}}`, "200 Answer text/event-stream id: 1 event: done"},
		{"a body in place", "{post: {requestBody: {content: {application/json: {schema: {type: object, required: [a], properties: {a: {type: string}}}}}}}}", "application/json object a required string"},
		{"bytes", "{get: {responses: {'200': {description: A picture., content: {image/png: {}}}}}}", "200 A picture. image/png bytes"},
		{"bytes of any type", "{get: {responses: {'200': {description: A file., content: {'*/*': {schema: {contentMediaType: application/octet-stream, description: As it is.}}}}}}}", "200 A file. */* bytes As it is. Request"},
		{"statuses", "{get: {responses: {200: {description: Fine.}, 5XX: {description: Ours.}, default: {description: Else.}}}}", "200 Fine. 5XX Ours. default any other status Else."},
		{"headers", "{get: {responses: {'200': {headers: {ETag: {description: Of the content., schema: {type: string}}}}}}}", "ETag string Of the content."},
		{"examples by name", "{get: {responses: {'200': {content: {application/json: {examples: {small: {summary: A small one, value: {a: 1}}, big: {value: [2]}}}}}}}}", `200 A small one application/json { "a": 1 } 200 big application/json [ 2 ]`},
		{"a made-up answer", "{get: {responses: {'200': {content: {application/json: {schema: {$ref: '#/components/schemas/Run'}}}}}}}", `200 Answer application/json { "prompt": "string", "seed": 1, "id": "string" }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, part, _ := strings.Cut(page(t, withOperation(c.operation)), "<article")
			part, _, _ = strings.Cut("<article"+part, "</article>")
			if got := read(part); !strings.Contains(got, c.want) {
				t.Errorf("the operation reads %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	p := page(t, []byte(`
openapi: 3.1.0
info: {title: T, version: '1'}
tags: [{name: First, description: Of all.}]
webhooks: {done: {post: {summary: A run is done, requestBody: {content: {application/json: {schema: {const: 1}}}}}}}
paths:
  /a: {get: {tags: [New, First], summary: Tagged}}
  /b: {get: {summary: Untagged}}
`))
	words := read(p)
	for _, want := range []string{"First Of all. Also here: Tagged", "New Tagged GET /a", "Other operations Untagged GET /b", "Webhooks A run is done POST done Sent to you by the service"} {
		if !strings.Contains(words, want) {
			t.Errorf("the page reads %q, want %q in it", words, want)
		}
	}
	if n := len(curlText.FindAllString(p, -1)); n != 2 {
		t.Errorf("%d requests, want 2: nobody calls a webhook", n)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"lines of one paragraph", `one\ntwo`, "<p>one two</p>"},
		{"paragraphs", `one\n\n\ntwo`, "<p>one</p><p>two</p>"},
		{"code and bold", "a `b` **c d** e", "<p>a <code>b</code> <strong>c d</strong> e</p>"},
		{"a list", `- one\n  more\n* two`, "<ul><li>one more</li><li>two</li></ul>"},
		{"a list with space between", `- one\n\n- two`, "<ul><li>one</li><li>two</li></ul>"},
		{"a list after words", `Either:\n- a\n- b\n\nEnd.`, "<p>Either:</p><ul><li>a</li><li>b</li></ul><p>End.</p>"},
		{"styles in a list", "- `a`: **b**", "<li><code>a</code>: <strong>b</strong></li>"},
		{"no styles within code", "`**a**`", "<p><code>**a**</code></p>"},
		{"marks without a partner", "2 ** 3 ` 4 ** 5", "<p>2 ** 3 ` 4 ** 5</p>"},
		{"empty marks", "a `` b ****", "<p>a `` b ****</p>"},
		{"HTML is text", "<b>a</b> `<i>` &amp;", "<p>&lt;b&gt;a&lt;/b&gt; <code>&lt;i&gt;</code> &amp;amp;</p>"},
		{"code that names a schema", "See `Run`.", `<p>See <a href="#schema-Run"><code>Run</code></a>.</p>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := page(t, withOperation(`{get: {description: "`+c.text+`"}}`))
			if !strings.Contains(p, c.want) {
				_, part, _ := strings.Cut(p, "<article")
				t.Errorf("want %s in %s", c.want, part)
			}
		})
	}
}
