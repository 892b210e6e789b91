package api_test

import (
	"fmt"
	"strings"
	"testing"

	"atelier/internal/web/api/wire"
)

// writeFlow sends a JSON body to /api/v2/flows and what follows it.
func (s *service) writeFlow(method, path, body string) answer {
	s.t.Helper()
	return s.send(method, "/api/v2/flows"+path, "application/json", strings.NewReader(body))
}

// newFlow saves a flow of one step with a name; query is "?team_id=…" or "".
func (s *service) newFlow(query, name string) wire.Flow {
	s.t.Helper()
	return decodeAnswer[wire.Flow](s.t, s.writeFlow("POST", query, flowDraft(name, "")).checkStatus(s.t, "a new flow", 201, ""))
}

// flowDraft returns a flow of one step, with further members.
func flowDraft(name, more string) string {
	return fmt.Sprintf(`{"name":%q,"fields":[{"key":"prompt","type":"PROMPT","label":"Prompt"}],
		"steps":[{"id":"draw","tool":"one","inputs":{"prompt":{"field":"prompt"},"script":"%s-constant"}}]%s}`, name, name, more)
}

func TestFlows(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		f := m.newFlow("", "Poster")
		if f.Name != "Poster" || f.Version != 1 || f.TeamID != nil || len(f.Steps) != 1 || f.Steps[0]["tool"] != "one" || f.Shared {
			t.Errorf("flow = %+v", f)
		}
		tool := getJSON[wire.ToolDetail](m.service, "/api/v2/tools/"+f.ID)
		if tool.Name != "Poster" || tool.Slug != f.Slug || len(tool.Fields) != 1 {
			t.Errorf("tool = %+v", tool)
		}
		if by := getJSON[wire.ToolDetail](m.service, "/api/v2/tools/"+f.Slug); by.ID != f.ID {
			t.Errorf("by slug = %+v", by)
		}
		listed := func() (found bool) {
			for _, one := range getJSON[wire.ToolList](m.service, "/api/v2/tools?limit=100").Data {
				found = found || one.ID == f.ID
			}
			return found
		}
		if !listed() {
			t.Error("the flow is not among the tools")
		}

		changed := decodeAnswer[wire.Flow](t, m.writeFlow("PUT", "/"+f.ID, flowDraft("Large poster", `,"version":1,"description":"For walls."`)).checkStatus(t, "a change", 200, ""))
		if changed.Version != 2 || changed.Description != "For walls." {
			t.Errorf("changed = %+v", changed)
		}
		m.writeFlow("PUT", "/"+f.ID, flowDraft("Other", `,"version":1`)).checkStatus(t, "an old version", 412, "CONFLICT")
		if got := getJSON[wire.Flow](m.service, "/api/v2/flows/"+f.ID); got.Name != "Large poster" {
			t.Errorf("got = %+v", got)
		}
		if after := getJSON[wire.ToolDetail](m.service, "/api/v2/tools/"+f.ID); after.ToolFieldsHash == tool.ToolFieldsHash || after.Name != "Large poster" {
			t.Errorf("the tool did not change: %+v", after)
		}
		versions := getJSON[wire.FlowVersionList](m.service, "/api/v2/flows/"+f.ID+"/versions").Data
		if len(versions) != 2 || versions[0].Version != 2 || versions[1].Name != "Poster" {
			t.Errorf("versions = %+v", versions)
		}
		if all := getJSON[wire.FlowList](m.service, "/api/v2/flows").Data; len(all) != 1 || all[0].ID != f.ID {
			t.Errorf("list = %+v", all)
		}

		m.sendRequest("DELETE", "/api/v2/flows/"+f.ID).checkStatus(t, "a deletion", 204, "")
		m.sendRequest("GET", "/api/v2/flows/"+f.ID).checkStatus(t, "a deleted flow", 404, "NOT_FOUND")
		m.sendRequest("GET", "/api/v2/tools/"+f.ID).checkStatus(t, "the tool of a deleted flow", 404, "NOT_FOUND")
		m.sendRequest("DELETE", "/api/v2/flows/"+f.ID).checkStatus(t, "a second deletion", 404, "NOT_FOUND")
		if listed() {
			t.Error("a deleted flow is among the tools")
		}
	})
}

func TestFlowsAreChecked(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		check := decodeAnswer[wire.FlowCheck](t, m.writeFlow("POST", "/check", flowDraft("Poster", "")).checkStatus(t, "a check", 200, ""))
		if len(check.Problems) != 0 || check.Price == nil || len(check.Price.Steps) != 1 || check.Price.Steps[0].Step != "draw" {
			t.Errorf("check = %+v", check)
		}
		const wrong = `{"name":"x","steps":[{"id":"draw","tool":"one","inputs":{"picture":{"step":"none"}}}]}`
		check = decodeAnswer[wire.FlowCheck](t, m.writeFlow("POST", "/check", wrong).checkStatus(t, "a check", 200, ""))
		if len(check.Problems) != 1 || check.Problems[0].Path != "steps.0.inputs.picture" || check.Price != nil {
			t.Errorf("check = %+v", check)
		}
		a := m.writeFlow("POST", "", wrong)
		if a.checkStatus(t, "a wrong flow", 400, "INVALID_REQUEST"); !strings.Contains(string(a.body), `"path":"steps.0.inputs.picture"`) {
			t.Errorf("answer = %s", a.body)
		}
		for _, bad := range []string{
			``, `[]`, `{}`, `{"name":"x"}`, `{"name":1,"steps":[]}`, `{"name":"x","steps":{}}`, `{"name":"x","steps":[1]}`, `{"name":"x","steps":[],"fields":[1]}`,
			`{"name":"x","steps":[],"results":[1]}`, `{"name":"x","steps":[],"shared":"yes"}`, `{"name":"` + strings.Repeat("x", 81) + `","steps":[]}`,
			`{"name":"a\nb","steps":[]}`, `{"name":"x","steps":[],"description":"` + strings.Repeat("x", 301) + `"}`,
		} {
			for _, path := range []string{"", "/check"} {
				m.writeFlow("POST", path, bad).checkStatus(t, bad, 400, "INVALID_REQUEST")
			}
		}
		for _, bad := range []string{`{}`, `{"library_id":"x"}`, `{"library_id":1}`} {
			m.writeFlow("POST", "/draft", bad).checkStatus(t, bad, 400, "INVALID_REQUEST")
		}
		m.writeFlow("POST", "/draft", `{"library_id":"Qm3vT8sLw1ZrYb6KdXf9:0b5f8a4e-6c1d-4f0e-9a57-3d2c1b0a9e8f"}`).checkStatus(t, "an unknown result", 404, "NOT_FOUND")
		if all := getJSON[wire.FlowList](m.service, "/api/v2/flows").Data; len(all) != 0 {
			t.Errorf("%d flows were saved", len(all))
		}
	})
}

func TestFlowOfAResult(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		drawn := m.done("", m.body("one", `,"inputs":{"prompt":"a fox","amount":3}`))
		again := m.done("", m.body("asks", `,"inputs":{"prompt":"larger","picture":{"kind":"LIBRARY_REF","id":"`+drawn.Outputs[0].ID+`"}}`))
		a := m.writeFlow("POST", "/draft", `{"library_id":"`+again.Outputs[0].ID+`"}`)
		draft := decodeAnswer[wire.FlowDraft](t, a.checkStatus(t, "a draft", 200, ""))
		if len(draft.Steps) != 2 || draft.Steps[0]["tool"] != "one" || draft.Steps[1]["tool"] != "asks" || len(*draft.Fields) != 2 {
			t.Fatalf("draft = %s", a.body)
		}
		f := decodeAnswer[wire.Flow](t, m.writeFlow("POST", "", string(a.body)).checkStatus(t, "the draft", 201, ""))
		tool := getJSON[wire.ToolDetail](m.service, "/api/v2/tools/"+f.ID)
		if tool.Name != "larger" || len(tool.Fields) != 2 {
			t.Errorf("tool = %+v", tool)
		}
	})
}
