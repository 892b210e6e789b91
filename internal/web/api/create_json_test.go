package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"atelier/internal/base/ids"
	"atelier/internal/web/api/wire"
)

// oddBodies are texts that parsers disagree about. $ stands for the members
// that a good request has.
func oddBodies() (good, bad []string) {
	nested := func(open, shut string, n int) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	good = []string{
		`{$}`, " \t\r\n{ $ }\n", `{"unknown":1,$}`, `{$,"":0}`, `{$,"__proto__":{"x":1}}`, `{$,"constructor":{"prototype":{}}}`,
		`{$,"x":1E400}`, `{$,"x":-1e-999999}`, `{$,"x":` + strings.Repeat("9", 10_000) + `}`, `{$,"x":0.` + strings.Repeat("1", 10_000) + `}`, `{$,"x":-0}`, `{$,"x":0e0}`, `{$,"x":1E+2}`,
		`{$,"x":"\u0001\u001f\/\b\f\n\r\t\"\\"}`, `{$,"x":"\uD83C\uDFA8"}`, `{$,"x":"` + "\u2028\u2029\ufeff\ufffd\U0010ffff" + `"}`, `{$,"x":"\uFEFF\uFFFE"}`, `{$,"x":"\u007f` + "\x7f" + `"}`,
		`{$,"inputs":{}}`, `{$,"inputs":null,"metadata":null,"num_results":null,"plugin":null,"webhook_url":null}`, `{$,"inputs":{"prompt":null,"amount":null,"pictures":null}}`,
		`{$,"inputs":{"prompt":"","seed":null}}`, `{$,"inputs":{"amount":1e2}}`, `{$,"inputs":{"amount":-0.0}}`, `{$,"inputs":{"amount":1.0E+2}}`, `{$,"inputs":{"seed":4294967295}}`,
		`{$,"inputs":{"prompt":"` + "\u202e\u200b" + `𝕳ello"}}`, `{$,"x":` + nested("[", "]", 63) + `}`, `{$,"x":` + strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 63) + `}`,
		`{$,"x":[[],{},[null],true,false]}`, `{$,"a":1,"A":2}`, `{$,"x":"<script>"}`, `{$,"x":"` + strings.Repeat("a", 900_000) + `"}`, `{$,"plugin":"p"}`,
		`{$,"metadata":{"tool_id":1,"a":{"a":{"a":1}}}}`, `{$,"x":123123e100000}`, `{$,"x":[` + strings.Repeat("0,", 1000) + `0]}`,
	}
	bad = []string{
		``, ` `, "\n\n", `null`, `true`, `false`, `0`, `-1`, `1e5`, `"text"`, `""`, `[]`, `[{$}]`, `{}`, `[{}]`, `{$`, `$}`, `{$}}`, `{$}{$}`, `{$},`, `{$} x`, `{$}]`, `{$}null`, `{$}//`, `{$}#`, `,{$}`,
		"\ufeff{$}", "\xff\xfe{\x00}\x00", "\xfe\xff\x00{\x00}", "{\x00$}", "{$}\x00", `{$,}`, `{$,,"x":1}`, `{,$}`, `{$ "x":1}`, `{$,"x" 1}`, `{$,"x"::1}`, `{$,"x":}`, `{$,"x"}`, `{$,x:1}`, `{$,'x':1}`, `{$,"x":'y'}`,
		`{$,1:1}`, `{$,null:1}`, `{$,"x":[1,]}`, `{$,"x":[,1]}`, `{$,"x":[1 2]}`, `{$,"x":[1}`, `{$,"x":[1]]}`, `{$,"x":{"y":1]}`, `{$,"x":tru}`, `{$,"x":TRUE}`, `{$,"x":True}`, `{$,"x":nul}`, `{$,"x":NULL}`,
		`{$,"x":undefined}`, `{$,"x":NaN}`, `{$,"x":Infinity}`, `{$,"x":-Infinity}`, `{$,"x":+1}`, `{$,"x":01}`, `{$,"x":-01}`, `{$,"x":1.}`, `{$,"x":.5}`, `{$,"x":-.5}`, `{$,"x":1e}`, `{$,"x":1e+}`, `{$,"x":1.e5}`, `{$,"x":0x1F}`,
		`{$,"x":1_000}`, `{$,"x":1,000}`, `{$,"x":--1}`, `{$,"x":-}`, `{$,"x":１}`, `{$,"x":1 000}`, `{$,"x":0b1}`, `{$,"x":1n}`, `{$,"x":2.5.3}`, `{$,"x":9.3e2.1}`,
		`{$,"x":"y}`, `{$,"x":"\x41"}`, `{$,"x":"\a"}`, `{$,"x":"\'"}`, `{$,"x":"\u12"}`, `{$,"x":"\u12G4"}`, `{$,"x":"\U0001F3A8"}`, `{$,"x":"\`, `{$,"x":"\u`, "{$,\"x\":\"a\nb\"}", "{$,\"x\":\"a\tb\"}", "{$,\"x\":\"a\x00b\"}", "{$,\"x\":\"\x1f\"}",
		`{$,"x":"\ud800"}`, `{$,"x":"\udc00"}`, `{$,"x":"\ud800\ud800"}`, `{$,"x":"\udfa8\ud83c"}`, `{$,"x":"\ud83cx"}`, `{$,"\ud800":1}`, `{$,"x":"\u0000"}`, `{$,"a\u0000b":1}`, `{$,"metadata":{"a":"\u0000"}}`,
		"{$,\"x\":\"\xff\"}", "{$,\"x\":\"\xc0\xaf\"}", "{$,\"x\":\"\xed\xa0\x80\"}", "{$,\"x\":\"\xf4\x90\x80\x80\"}", "{$,\"x\":\"\xe2\x82\"}", "{$,\"\xff\":1}", "{$,\"x\":\"\xf8\xa1\xa1\xa1\xa1\"}", "{$}\xff", "{$,\"x\":\xff}",
		`{$,"x":1,"x":1}`, `{$,"x":1,"\u0078":2}`, `{$,"tool_id":"a"}`, `{$,"\u0074ool_id":"a"}`, `{$,"metadata":{"a":1,"a":1}}`, `{$,"inputs":{"prompt":"a","prompt":"b"}}`, `{$,"x":{"y":[{"z":1,"z":2}]}}`, `{$,"":1,"":2}`,
		`{$,/*x*/"x":1}`, `/*x*/{$}`, `{$}/*x*/`, "{$,//x\n\"x\":1}", "# x\n{$}", "<!-- x -->{$}", `<?xml version="1.0"?><a/>`, `)]}',{$}`, `callback({$})`, `tool_id=x&tool_fields_hash=y`, `--boundary`, `%7B%7D`, `*`, "\v{$}", "\f{$}", "\u00a0{$}", "\u2060{$}",
		`{$,"x":` + nested("[", "]", 64) + `}`, `{$,"x":` + nested("[", "]", 100_000) + `}`, strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100_000), `{$,"x":` + strings.Repeat(`{"a":`, 64) + "1" + strings.Repeat("}", 64) + `}`,
		`{$,"inputs":[]}`, `{$,"inputs":""}`, `{$,"inputs":"{}"}`, `{$,"inputs":1}`, `{$,"inputs":{"x":1}}`, `{$,"inputs":{"__proto__":1}}`, `{$,"inputs":{"constructor":{}}}`, `{$,"inputs":{"PROMPT":"x"}}`, `{$,"inputs":{"prompt ":"x"}}`,
		`{$,"inputs":{"prompt":1}}`, `{$,"inputs":{"prompt":["x"]}}`, `{$,"inputs":{"amount":"1"}}`, `{$,"inputs":{"amount":1e400}}`, `{$,"inputs":{"amount":true}}`, `{$,"inputs":{"seed":-1}}`, `{$,"inputs":{"seed":4294967296}}`, `{$,"inputs":{"seed":1.5}}`,
		`{$,"inputs":{"picture":"x"}}`, `{$,"inputs":{"picture":[]}}`, `{$,"inputs":{"picture":{}}}`, `{$,"inputs":{"picture":{"kind":"FILE"}}}`, `{$,"inputs":{"picture":{"kind":"UPLOAD_REF"}}}`, `{$,"inputs":{"picture":{"kind":"UPLOAD_REF","id":"../x"}}}`,
		`{$,"inputs":{"picture":{"kind":"UPLOAD_REF","id":1}}}`, `{$,"inputs":{"picture":{"kind":"LIBRARY_REF","id":"' OR 1=1"}}}`, `{$,"inputs":{"picture":{"kind":"MULTIPART","file_index":-1}}}`, `{$,"inputs":{"picture":{"kind":"MULTIPART","file_index":1e300}}}`,
		`{$,"inputs":{"pictures":{"kind":"UPLOAD_REF","id":"x"}}}`, `{$,"num_results":{}}`, `{$,"plugin":1}`, `{$,"plugin":[]}`, `{$,"webhook_url":1}`, `{$,"webhook_url":{}}`, `{$,"metadata":"x"}`, `{"tool_id":null,"tool_fields_hash":null}`, `{"Tool_Id":"x","Tool_Fields_Hash":"x"}`,
		`{$,"Tool_Id":"x"}`, `{$,"TOOL_ID":5}`, `{$,"tool-id":[]}`, `{$,"numResults":2}`, `{$,"team_id":""}`, `{$,"Inputs":null}`,
	}
	return good, bad
}

func TestOddBodies(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		good, bad := oddBodies()
		if n := len(good) + len(bad); n < 150 {
			t.Fatalf("there are %d bodies", n)
		}
		m.grant("anna@example.com", "", 10_000)
		members := strings.Trim(m.body("one", ""), "{}")
		for _, text := range good {
			if a := m.create(strings.Replace(text, "$", members, 1)); a.StatusCode != 202 {
				t.Errorf("%.200q = %d %.300s, want 202", text, a.StatusCode, a.body)
			}
		}
		m.unchanged("bad bodies", func() {
			for _, text := range bad {
				body := strings.Replace(text, "$", members, 1)
				m.create(body).checkStatus(t, fmt.Sprintf("%.200q", text), 400, "INVALID_REQUEST")
				kind, parts := form(payload(body))
				m.send("POST", "/api/v2/generate", kind, parts).checkStatus(t, fmt.Sprintf("the payload %.200q", text), 400, "INVALID_REQUEST")
				if a := m.send("POST", "/api/v2/generate/preview-cost", "application/json", strings.NewReader(body)); a.StatusCode/100 != 4 {
					t.Errorf("the price of %.200q = %d %.300s", text, a.StatusCode, a.body)
				}
			}
		})
	})
}

func TestJSONBodyLimits(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		const most = 1 << 20
		for n, want := range map[int]int{most - 1: 202, most: 202, most + 1: 413} {
			body := m.body("one", "")
			body += strings.Repeat(" ", n-len(body))
			code := ""
			if want == 413 {
				code = "PAYLOAD_TOO_LARGE"
			}
			a := m.create(body).checkStatus(t, fmt.Sprint(n, " bytes"), want, code)
			kind, parts := form(payload(body))
			b := m.send("POST", "/api/v2/generate", kind, parts).checkStatus(t, fmt.Sprint("a payload of ", n, " bytes"), want, code)
			if want == 413 && (a.readError(t).Details["limit_bytes"] != float64(most) || b.readError(t).Details["limit_bytes"] != float64(most)) {
				t.Errorf("the limit is missing: %s, %s", a.body, b.body)
			}
		}
		for depth, want := range map[int]int{62: 202, 63: 202, 64: 400} { // one more around all
			m.create(m.body("one", `,"x":`+strings.Repeat("[", depth)+strings.Repeat("]", depth))).checkStatus(t, fmt.Sprint("depth ", depth+1), want, map[int]string{400: "INVALID_REQUEST"}[want])
		}
	})
}

// TestNamesThatCostTokens sends names that are nearly right, and a team in the
// wrong place, by every route whose body costs tokens.
func TestNamesThatCostTokens(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		team, tokens := m.team("Look", annasEmail)
		anna := m.as(tokens[0])
		routes := map[string]func(query, body string) answer{
			"create": func(query, body string) answer {
				return anna.send("POST", "/api/v2/generate"+query, "application/json", strings.NewReader(body))
			},
			"form": func(query, body string) answer {
				kind, form := form(payload(body))
				return anna.send("POST", "/api/v2/generate"+query, kind, form)
			},
			"preview": func(query, body string) answer {
				return anna.send("POST", "/api/v2/generate/preview-cost"+query, "application/json", strings.NewReader(body))
			},
		}
		one := "?team_id=" + team
		for name, send := range routes {
			m.unchanged(name, func() {
				for field, hint := range map[string]string{"numResults": "num_results", "num-results": "num_results", "team_id": "query", "teamId": "query", "TEAM-ID": "query"} {
					a := send(one, m.body("wide", fmt.Sprintf(`,%q:2`, field))).checkStatus(t, name+" with "+field, 400, "INVALID_REQUEST")
					if !strings.Contains(string(a.body), fmt.Sprintf(`"path":%q`, field)) || !strings.Contains(string(a.body), hint) {
						t.Errorf("%s with %s = %s, want %s in it", name, field, a.body, hint)
					}
				}
				send(one+"&team_id="+ids.New(), m.body("wide", "")).checkStatus(t, name+" for two teams", 400, "ACCOUNT_SELECTION_INVALID")
			})
			a := send(one+"&team_id="+team, m.body("wide", ""))
			if a.StatusCode >= 300 {
				t.Errorf("%s for one team, named twice = %d %s", name, a.StatusCode, a.body)
			}
			if a.StatusCode == http.StatusAccepted {
				id := decodeAnswer[wire.GenerationCreated](t, a).RequestID
				anna.sendRequest("GET", "/api/v2/generate/"+id+one+"&team_id="+team).checkStatus(t, "poll for one team, named twice", 200, "")
			}
		}
	})
}
