package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"atelier/internal/testkit/watch"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

// protocolVersions are the versions of the Model Context Protocol that the tests
// speak: the last one with sessions, and the first one without.
var protocolVersions = []string{"2025-11-25", "2026-07-28"}

// eachMCPFixture runs fn on both databases with somebody who works.
func eachMCPFixture(t *testing.T, fn func(m *runFixture)) {
	eachRunFixture(t, func(_ *testing.T, m *runFixture) {
		all := maps.Clone(openAITools)
		maps.Copy(all, files(
			"read.yaml", strings.Replace(manifest("Read", "fields:\n  - {key: script, type: TEXT_AREA, label: Script}\n"), "IMG, mime_types: [image/png]", "TEXT, mime_types: [text/plain]", 1),
			"kits.yaml", "sound: {label: Sound, tools: [{tool: talk}], default: talk}\nmoving: {label: Moving, tools: [{tool: film}, {tool: talk}], default: film}\n",
		))
		m.setCatalog(all)
		m.work()
		fn(m)
	})
}

// bearer sends a token with each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// mcpClient connects with the official client. progress is called with each
// notification of progress.
func (m *runFixture) mcpClient(version, query string, progress func(*mcp.ProgressNotificationParams)) *mcp.ClientSession {
	m.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			if progress != nil {
				progress(r.Params)
			}
		},
	})
	session, err := client.Connect(m.t.Context(), &mcp.StreamableClientTransport{
		Endpoint:   m.url + "/mcp" + query,
		HTTPClient: &http.Client{Transport: bearer{m.token}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { session.Close() })
	return session
}

// callMCP calls a tool. It fails the test if the result is an error.
func (m *runFixture) callMCP(session *mcp.ClientSession, tool string, arguments any) *mcp.CallToolResult {
	m.t.Helper()
	result, err := session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		m.t.Fatalf("%s: %v", tool, err)
	}
	if result.IsError {
		m.t.Fatalf("%s: %s", tool, textOf(result))
	}
	return result
}

// textOf returns the first text of a result.
func textOf(result *mcp.CallToolResult) string {
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

// mcpRun is the structured result of a call that runs a tool.
type mcpRun struct {
	RunID         string `json:"run_id"`
	Status        string
	TokensCharged int64 `json:"tokens_charged"`
	Results       []struct {
		LibraryID string `json:"library_id"`
		URL       string
	}
}

// structuredAs decodes the structured part of a result.
func structuredAs[T any](t *testing.T, result *mcp.CallToolResult) (v T) {
	t.Helper()
	text, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMCPLists(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		own := []string{"search_tools", "run_tool", "preview_cost", "get_run", "cancel_run", "list_library", "get_balance"}
		for _, version := range protocolVersions {
			for query, want := range map[string][]string{
				"":                   {"film", "flip", "paint", "read", "repaint", "talk"},
				"?kits=all":          {"film", "flip", "paint", "read", "repaint", "talk"},
				"?kits=sound":        {"talk"},
				"?kits=moving,sound": {"film", "talk"},
			} {
				list, err := m.mcpClient(version, query, nil).ListTools(m.t.Context(), nil)
				if err != nil {
					m.t.Fatal(err)
				}
				var names []string
				for _, one := range list.Tools[len(own):] {
					names = append(names, one.Name)
				}
				slices.Sort(names)
				if !slices.Equal(names, want) {
					m.t.Errorf("%s: tools of %q = %v, want %v", version, query, names, want)
				}
				for i, name := range own {
					if list.Tools[i].Name != name {
						m.t.Errorf("tool %d = %s, want %s", i, list.Tools[i].Name, name)
					}
				}
			}
		}
		if _, err := m.mcpClient(protocolVersions[0], "?kits=nothing", nil).ListTools(m.t.Context(), nil); err == nil || !strings.Contains(err.Error(), `There is no kit "nothing". The kits are`) {
			m.t.Errorf("an unknown kit: %v", err)
		}

		list, err := m.mcpClient("", "", nil).ListTools(m.t.Context(), nil)
		if err != nil {
			m.t.Fatal(err)
		}
		i := slices.IndexFunc(list.Tools, func(t *mcp.Tool) bool { return t.Name == "talk" })
		schema, _ := json.Marshal(list.Tools[i].InputSchema)
		want := `{"additionalProperties":false,"properties":{"script":{"type":"string"},"text":{"minLength":1,"type":"string"},"voice":{"default":"man","enum":["man","woman"]}},` +
			`"required":["text"],"type":"object"}`
		if string(schema) != want {
			m.t.Errorf("schema = %s, want %s", schema, want)
		}
		if !strings.Contains(list.Tools[i].Description, "Makes a sound; costs 3 tokens.") {
			m.t.Errorf("description = %q", list.Tools[i].Description)
		}
	})
}

func TestMCPRunsATool(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		for _, version := range protocolVersions {
			before := m.balance()
			var mu sync.Mutex
			var seen []float64
			session := m.mcpClient(version, "", func(p *mcp.ProgressNotificationParams) {
				mu.Lock()
				defer mu.Unlock()
				seen = append(seen, p.Progress)
			})
			params := &mcp.CallToolParams{Name: "paint", Arguments: map[string]any{
				"prompt": "a fox", "num_results": 2, "size": "512x512", "seed": 7,
				"script": `[{"progress":0.25},{"wait":"400ms"},{"progress":0.75},{"wait":"400ms"},{"output":{"kind":"png"}},{"output":{"kind":"png"}}]`,
			}}
			params.SetProgressToken("token")
			result, err := session.CallTool(m.t.Context(), params)
			if err != nil || result.IsError || len(result.Content) != 3 {
				m.t.Fatalf("%s: paint = %+v, %v", version, result, err)
			}
			one := structuredAs[mcpRun](m.t, result)
			if one.Status != "succeeded" || one.TokensCharged != 6 || len(one.Results) != 2 || before-m.balance() != 6 {
				m.t.Errorf("%s: run = %+v, %d tokens are gone", version, one, before-m.balance())
			}
			picture, ok := result.Content[1].(*mcp.ImageContent)
			if !ok || picture.MIMEType != "image/png" || !bytes.HasPrefix(picture.Data, []byte("\x89PNG")) {
				m.t.Errorf("%s: content = %+v", version, result.Content[1])
			}
			if !strings.Contains(textOf(result), one.Results[0].LibraryID) {
				m.t.Errorf("%s: text = %q", version, textOf(result))
			}
			mu.Lock()
			if len(seen) < 2 || !slices.IsSorted(seen) || !slices.Contains(seen, 75) {
				m.t.Errorf("%s: progress = %v", version, seen)
			}
			mu.Unlock()
			var plugin string
			if err := m.db.QueryRow(m.t.Context(), `SELECT plugin FROM run WHERE id = $1`, one.RunID).Scan(&plugin); err != nil || plugin != "mcp" {
				m.t.Errorf("plugin = %q, %v", plugin, err)
			}
			if got := getJSON[wire.Generation](m.service, "/api/v2/generate/"+one.RunID); *got.Prompt != "a fox" || got.Seed != 7 {
				m.t.Errorf("run = %+v", got)
			}
		}
	})
}

// balance returns the tokens of the person.
func (m *runFixture) balance() int64 {
	m.t.Helper()
	return getJSON[wire.Identity](m.service, "/api/v2/me").Accounts[0].Balance.Tokens
}

// TestMCPContents: results are content up to a size, and links beyond it.
func TestMCPContents(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		session := m.mcpClient("", "", nil)
		sound := m.callMCP(session, "talk", map[string]any{"text": "hello", "script": `[{"output":{"kind":"wav","seconds":1}}]`})
		if c, ok := sound.Content[1].(*mcp.AudioContent); !ok || c.MIMEType != "audio/wav" || len(c.Data) == 0 {
			m.t.Errorf("sound = %+v", sound.Content[1])
		}
		words := m.callMCP(session, "read", map[string]any{"script": raw([]byte("a haiku"))})
		if c, ok := words.Content[1].(*mcp.TextContent); !ok || c.Text != "a haiku" {
			m.t.Errorf("words = %+v", words.Content[1])
		}
		film := m.callMCP(session, "film", map[string]any{"prompt": "a fox", "script": raw(shortFilm(m.t))})
		link, ok := film.Content[1].(*mcp.ResourceLink)
		if !ok || link.MIMEType != "video/mp4" || *link.Size == 0 {
			m.t.Fatalf("film = %+v", film.Content[1])
		}
		if file := m.fetch("GET", link.URI); file.StatusCode != 200 || int64(len(file.body)) != *link.Size {
			m.t.Errorf("file = %d, %d bytes", file.StatusCode, len(file.body))
		}
		loud := m.callMCP(session, "talk", map[string]any{"text": "hello", "script": `[{"output":{"kind":"wav","seconds":300}}]`})
		if _, ok := loud.Content[1].(*mcp.ResourceLink); !ok {
			m.t.Errorf("a large sound = %T", loud.Content[1])
		}
	})
}

func TestMCPFiles(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		session := m.mcpClient("", "", nil)
		data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(picture(20, 10))
		first := structuredAs[mcpRun](m.t, m.callMCP(session, "flip", map[string]any{"picture": data}))
		upload := m.upload("", picture(30, 20))
		for what, value := range map[string]string{"a library id": first.Results[0].LibraryID, "an upload id": upload.ID, "the address of an upload": upload.URL} {
			if got := structuredAs[mcpRun](m.t, m.callMCP(session, "flip", map[string]any{"picture": value})); got.Status != "succeeded" {
				m.t.Errorf("%s: %+v", what, got)
			}
		}
		before := m.state()
		for what, one := range map[string]struct{ value, want string }{
			"an address elsewhere":    {"https://example.com/p.png", "Addresses of other services are not supported"},
			"data that is no picture": {"data:image/png;base64,aGVsbG8=", "picture: The file type is not supported"},
			"data that is no base64":  {"data:image/png;base64,!", "base64"},
			"data in another form":    {"data:image/png,abc", "must have the form"},
			"an address of a result":  {first.Results[0].URL, "Send the library id"},
			"an id of nothing":        {"20200101-AAAAAAAA-0", "picture"},
			"an upload of nobody":     {"abcdefghij0123456789", "picture"},
		} {
			result, err := session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: "flip", Arguments: map[string]any{"picture": one.value}})
			if err != nil || !result.IsError || !strings.Contains(textOf(result), one.want) {
				m.t.Errorf("%s: %q, %v", what, textOf(result), err)
			}
		}
		if after := m.state(); after != before {
			m.t.Errorf("refused files leave something:\n%s\nbefore:\n%s", after, before)
		}
	})
}

func TestMCPRefusals(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		session := m.mcpClient("", "", nil)
		m.callMCP(session, "paint", map[string]any{"prompt": "x"}) // from then on the worker is known
		before := m.state()
		for _, one := range []struct {
			what, tool string
			arguments  any
			want       string
		}{
			{"an unknown tool", "nothing", nil, "Use search_tools"},
			{"no prompt", "paint", map[string]any{}, "prompt"},
			{"an unknown input", "paint", map[string]any{"prompt": "x", "colour": "red"}, "colour"},
			{"an unknown option", "talk", map[string]any{"text": "x", "voice": "dog"}, "voice"},
			{"a number beyond the range", "film", map[string]any{"prompt": "x", "seconds": 99}, "seconds"},
			{"too many results", "paint", map[string]any{"prompt": "x", "num_results": 9}, "4"},
			{"a number of results that is none", "paint", map[string]any{"prompt": "x", "num_results": "many"}, "num_results"},
			{"a size that is not offered", "paint", map[string]any{"prompt": "x", "size": "7x7"}, "size"},
			{"words that are not allowed", "paint", map[string]any{"prompt": "child porn"}, "prompt: The content policy"},
			{"an unknown run", "get_run", map[string]any{"run_id": "00000000-0000-7000-8000-000000000000"}, ""},
			{"a run that is no text", "get_run", map[string]any{"run_id": 7}, "run_id"},
			{"no tool", "run_tool", map[string]any{}, "There is no tool"},
			{"inputs that are no object", "run_tool", map[string]any{"tool": "paint", "inputs": "x"}, "inputs"},
			{"a limit beyond the range", "list_library", map[string]any{"limit": 9999}, "limit"},
		} {
			result, err := session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: one.tool, Arguments: one.arguments})
			if err != nil || !result.IsError || textOf(result) == "" || !strings.Contains(textOf(result), one.want) {
				m.t.Errorf("%s: %+v, %v, want an error about %s", one.what, result, err, one.want)
			}
		}
		if after := m.state(); after != before {
			m.t.Errorf("refused calls leave something:\n%s\nbefore:\n%s", after, before)
		}
		failed, err := session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: "paint", Arguments: map[string]any{"prompt": "x", "script": `[{"fail":{"code":"ENGINE_FAILED","message":"no colours"}}]`}})
		if err != nil || !failed.IsError || !strings.Contains(textOf(failed), "ENGINE_FAILED") || !strings.Contains(textOf(failed), "It cost nothing.") {
			m.t.Errorf("a failed run = %+v, %v", failed, err)
		}
		poor := m.as(m.addPerson("poor@example.com"))
		result, err := poor.mcpClient("", "", nil).CallTool(m.t.Context(), &mcp.CallToolParams{Name: "paint", Arguments: map[string]any{"prompt": "x"}})
		if err != nil || !result.IsError || structuredAs[wire.ErrorBody](m.t, result).Code != "INSUFFICIENT_BALANCE" {
			m.t.Errorf("no tokens: %+v, %v", result, err)
		}
	})
}

// TestMCPTellsNothingOfOthers: what belongs to somebody else does not exist.
func TestMCPTellsNothingOfOthers(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		theirs := structuredAs[mcpRun](m.t, m.callMCP(m.mcpClient("", "", nil), "paint", map[string]any{"prompt": "a secret fox"}))
		upload := m.upload("", picture(30, 20))
		bert := m.as(m.addPerson("bert@example.com"))
		m.grant("bert@example.com", "", 100)
		session := bert.mcpClient("", "", nil)
		refusal := func(tool string, arguments map[string]any) string {
			result, err := session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
			if err != nil || !result.IsError {
				m.t.Fatalf("%s %v: %+v, %v", tool, arguments, result, err)
			}
			return textOf(result)
		}
		missing := "01890000-0000-7000-8000-000000000000"
		for _, tool := range []string{"get_run", "cancel_run"} {
			if got, want := refusal(tool, map[string]any{"run_id": theirs.RunID}), refusal(tool, map[string]any{"run_id": missing}); got != want {
				m.t.Errorf("%s of somebody else = %q, of nobody %q", tool, got, want)
			}
		}
		for theirs, missing := range map[string]string{theirs.Results[0].LibraryID: "gen_" + missing + "_0", upload.ID: "abcdefghij0123456789", upload.URL: strings.Replace(upload.URL, upload.ID, "abcdefghij0123456789", 1)} {
			if got, want := refusal("flip", map[string]any{"picture": theirs}), refusal("flip", map[string]any{"picture": missing}); got != want {
				m.t.Errorf("a file of somebody else (%s) = %q, of nobody %q", theirs, got, want)
			}
		}
		if got := textOf(m.callMCP(session, "list_library", map[string]any{"search": "secret"})); got != "The library has no such item." {
			m.t.Errorf("library = %q", got)
		}
	})
}

// TestMCPOwnTools calls the tools of the service itself.
func TestMCPOwnTools(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		session := m.mcpClient("", "?kits=sound", nil)
		found := structuredAs[struct {
			Tools   []struct{ Name string }
			Matches int
		}](m.t, m.callMCP(session, "search_tools", map[string]any{"query": "PAINT"}))
		if found.Matches != 2 || len(found.Tools) != 2 {
			m.t.Errorf("found = %+v", found)
		}
		cost := structuredAs[struct {
			Total  int64 `json:"total_tokens"`
			CanRun bool  `json:"can_run"`
		}](m.t, m.callMCP(session, "preview_cost", map[string]any{"tool": "paint", "inputs": map[string]any{"prompt": "x", "num_results": 3}}))
		if cost.Total != 9 || !cost.CanRun {
			m.t.Errorf("cost = %+v", cost)
		}
		one := structuredAs[mcpRun](m.t, m.callMCP(session, "run_tool", map[string]any{"tool": "paint", "inputs": map[string]any{"prompt": "a quiet zebra"}}))
		if got := structuredAs[mcpRun](m.t, m.callMCP(session, "get_run", map[string]any{"run_id": one.RunID})); fmt.Sprint(got.Results[0].LibraryID) != one.Results[0].LibraryID {
			m.t.Errorf("run = %+v, want %+v", got, one)
		}
		items := structuredAs[struct {
			Items []struct {
				LibraryID string `json:"library_id"`
				Prompt    string
			}
		}](m.t, m.callMCP(session, "list_library", map[string]any{"search": "zebra", "type": "IMG", "limit": 5})).Items
		if len(items) != 1 || items[0].LibraryID != one.Results[0].LibraryID || items[0].Prompt != "a quiet zebra" {
			m.t.Errorf("library = %+v", items)
		}
		if got := structuredAs[struct{ Tokens int64 }](m.t, m.callMCP(session, "get_balance", nil)).Tokens; got != m.balance() {
			m.t.Errorf("balance = %d, want %d", got, m.balance())
		}
		slow := decodeAnswer[struct{ ID string }](m.t, m.post("videos", `{"model":"film","prompt":"x","script":"[{\"wait\":\"300ms\"},{\"fail\":{\"code\":\"ENGINE_FAILED\",\"message\":\"no film\"}}]"}`))
		got, err := session.CallTool(m.t.Context(), &mcp.CallToolParams{Name: "get_run", Arguments: map[string]any{"run_id": slow.ID, "wait": true}})
		if err != nil || structuredAs[mcpRun](m.t, got).Status != "failed" {
			m.t.Errorf("awaited run = %+v", got)
		}
	})
}

// TestMCPCancels: a call that its client cancels cancels its run.
func TestMCPCancels(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		for _, version := range protocolVersions {
			session := m.mcpClient(version, "", nil)
			ctx, cancel := context.WithCancel(m.t.Context())
			ended := make(chan error)
			go func() {
				_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "paint", Arguments: map[string]any{"prompt": "cancel " + version, "script": `[{"hang":true}]`}})
				ended <- err
			}()
			var id string
			watch.Until(m.t, "the run", func() bool {
				for _, one := range getJSON[wire.GenerationList](m.service, "/api/v2/generations").Data {
					if *one.Prompt == "cancel "+version && one.Stage != nil && *one.Stage == "running" {
						id = one.RequestID
					}
				}
				return id != ""
			})
			cancel()
			if err := <-ended; err == nil {
				m.t.Error("the cancelled call has a result")
			}
			if got := m.finish("", id); got.Status != "cancelled" {
				m.t.Errorf("%s: the run is %s", version, got.Status)
			}
		}
	})
}

// mcpPost sends a JSON-RPC message as a client with a session does.
func (m *runFixture) mcpPost(session, message string) answer {
	m.t.Helper()
	header := []string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", protocolVersions[0]}
	if session != "" {
		header = append(header, "Mcp-Session-Id", session)
	}
	return m.send("POST", "/mcp", "application/json", strings.NewReader(message), header...)
}

// TestMCPRepeats: a call that is sent again in its session is one run.
func TestMCPRepeats(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		a := m.mcpPost("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
		session := a.Header.Get("Mcp-Session-Id")
		if a.StatusCode != 200 || session == "" {
			m.t.Fatalf("initialize = %d %s", a.StatusCode, a.body)
		}
		const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"paint","arguments":{"prompt":"again"}}}`
		var group sync.WaitGroup
		for range 32 {
			group.Go(func() {
				if a := m.mcpPost(session, call); a.StatusCode != 200 || !strings.Contains(string(a.body), "library_id") {
					m.t.Errorf("call = %d %s", a.StatusCode, a.body)
				}
			})
		}
		group.Wait()
		if n := m.countRuns("again"); n != 1 {
			m.t.Errorf("the call has %d runs", n)
		}
		m.mcpPost(session, strings.Replace(call, `"id":2`, `"id":3`, 1))
		m.mcpPost("other", call)
		if n := m.countRuns("again"); n != 3 {
			m.t.Errorf("other calls make %d runs together, want 3", n)
		}
		if a := m.mcpPost(session, strings.Replace(call, "again", "something else", 1)); !strings.Contains(string(a.body), `"isError":true`) {
			m.t.Errorf("another call with the same id = %s", a.body)
		}
	})
}

func (m *runFixture) countRuns(prompt string) (n int) {
	m.t.Helper()
	if err := m.db.QueryRow(m.t.Context(), `SELECT count(*) FROM run WHERE prompt = $1`, prompt).Scan(&n); err != nil {
		m.t.Fatal(err)
	}
	return n
}

// TestMCPRequests sends what no client should send.
func TestMCPRequests(t *testing.T) {
	eachMCPFixture(t, func(m *runFixture) {
		m.callMCP(m.mcpClient("", "", nil), "paint", map[string]any{"prompt": "x"}) // from then on the worker is known
		before := m.state()
		for what, one := range map[string]struct {
			body   string
			status int
		}{
			"no JSON":           {`{`, 400},
			"no message":        {`{}`, 400},
			"an array":          {`[]`, 400},
			"too much nesting":  {strings.Repeat("[", 100) + strings.Repeat("]", 100), 400},
			"too much":          {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 4<<20) + `"}}`, 413},
			"nothing":           {``, 400},
			"an unknown method": {`{"jsonrpc":"2.0","id":1,"method":"nothing"}`, 400},
		} {
			if a := m.mcpPost("", one.body); a.StatusCode != one.status {
				m.t.Errorf("%s = %d %.200s, want %d", what, a.StatusCode, a.body, one.status)
			}
		}
		if a := m.mcpPost(strings.Repeat("s", 101), `{"jsonrpc":"2.0","id":1,"method":"ping"}`); a.StatusCode != 400 {
			m.t.Errorf("a long session id = %d", a.StatusCode)
		}
		for _, method := range []string{"GET", "DELETE"} {
			if a := m.send(method, "/mcp", "", nil, "Accept", "text/event-stream"); a.StatusCode != 405 {
				m.t.Errorf("%s = %d", method, a.StatusCode)
			}
		}
		if after := m.state(); after != before {
			m.t.Errorf("refused requests leave something:\n%s\nbefore:\n%s", after, before)
		}
		stranger := m.as("ate_nothing")
		a := stranger.mcpPost("", `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		if want := `Bearer resource_metadata="https://atelier.example/.well-known/oauth-protected-resource/mcp"`; a.StatusCode != 401 || a.Header.Get("WWW-Authenticate") != want {
			m.t.Errorf("without a credential = %d %v", a.StatusCode, a.Header)
		}
	})
}

// TestMCPWaits: a call that has waited long enough tells how to go on.
func TestMCPWaits(t *testing.T) {
	eachRunFixture(t, func(_ *testing.T, m *runFixture) {
		m.setCatalog(openAITools)
		m.work()
		m = &runFixture{service: m.with(func(p *api.Parts) { p.MCP.Wait = time.Second }, nil), made: m.made}
		result := m.callMCP(m.mcpClient("", "", nil), "paint", map[string]any{"prompt": "slow", "script": `[{"hang":true}]`})
		one := structuredAs[mcpRun](m.t, result)
		if one.Status != "pending" || !strings.Contains(textOf(result), "Call get_run with this id later") {
			m.t.Errorf("result = %+v %q", one, textOf(result))
		}
		m.callMCP(m.mcpClient("", "", nil), "cancel_run", map[string]any{"run_id": one.RunID})
		if got := m.finish("", one.RunID); got.Status != "cancelled" {
			m.t.Errorf("the run is %s", got.Status)
		}
	})
}
