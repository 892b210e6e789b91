package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/web/api/apitest"
)

// unit is what one result of the scripted tool costs.
const unit = 5

// scripted is a tool whose runs say themselves what happens in them.
var scripted = fmt.Sprintf(`name: Scripted
price: {type: COST, tokens: %d}
num_results: {max: 8}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
timeout: 60s
fields:
  - {key: script, type: TEXT_AREA, label: Script, max_length: 10000}
  - {key: picture, type: IMG, label: Picture, accept: [image/png]}
`, unit)

// newStage is a fresh installation on a migrated database whose only tool is
// the scripted one. Somebody is there already, so that no node offers to set it
// up.
func newStage(t *testing.T, engine string, env ...string) *site {
	t.Helper()
	return newStageOn(t, dbtest.URL(t, engine), env...)
}

// newStageOn is newStage on the database at an address.
func newStageOn(t *testing.T, database string, env ...string) *site {
	t.Helper()
	s := newSite(t)
	s.database = database
	dir := t.TempDir()
	write(t, dir, "scripted.yaml", scripted)
	s.env = append([]string{"ATELIER_CATALOG_BUILTIN=false", "ATELIER_TOOLS=" + dir, "ATELIER_CATALOG_REFRESH=1s"}, env...)
	s.token("root@example.com")
	return s
}

// grant gives a person, or a team, tokens.
func (s *site) grant(whom, who string, tokens int) {
	s.t.Helper()
	s.do("admin", "grant", whom, who, "--tokens", fmt.Sprint(tokens))
}

// order is the body of a create.
type order struct {
	ToolID     string         `json:"tool_id"`
	Hash       string         `json:"tool_fields_hash"`
	Inputs     map[string]any `json:"inputs"`
	NumResults int            `json:"num_results"`
	WebhookURL string         `json:"webhook_url,omitempty"`
}

// order asks the scripted tool for results; the steps are JSON, one each.
func (n *node) order(results int, steps ...string) order {
	n.t.Helper()
	var id string
	for _, id = range n.tools("", nil) {
	}
	inputs := map[string]any{}
	if len(steps) > 0 {
		inputs["script"] = "[" + strings.Join(steps, ",") + "]"
	}
	return order{ToolID: id, Hash: n.json("/api/v2/tools/" + id)["tool_fields_hash"].(string), Inputs: inputs, NumResults: results}
}

// Steps of scripts.
func countTo(path string) string { return fmt.Sprintf(`{"count_to": %q}`, path) }

func pause(d time.Duration) string { return fmt.Sprintf(`{"wait": %q}`, d) }

const picture = `{"output": {"kind": "png", "width": 64, "height": 48}}`

// create sends an order, with a file where there is one. It fails no test: the
// program may die of it.
func (n *node) create(token, query string, o order, file []byte, header ...string) (answer, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return answer{}, err
	}
	kind := "application/json"
	if file != nil {
		if kind, body, err = form(body, file); err != nil {
			return answer{}, err
		}
	}
	r, err := http.NewRequest("POST", n.url+"/api/v2/generate"+query, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := apitest.Client(n.t)
	client.Timeout = 30 * time.Second
	res, err := client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res, text}, err
}

// form is a multipart body with a payload and a picture.
func form(payload, file []byte) (kind string, body []byte, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	if err := w.WriteField("payload", string(payload)); err != nil {
		return "", nil, err
	}
	part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="files"; filename="a.png"`}, "Content-Type": {"image/png"}})
	if err != nil {
		return "", nil, err
	}
	if _, err := part.Write(file); err != nil {
		return "", nil, err
	}
	err = w.Close()
	return w.FormDataContentType(), b.Bytes(), err
}

// runs are all of an account's runs by request_id. The list is no poll: it
// costs nothing.
func (n *node) runs(token, team string) map[string]map[string]any {
	n.t.Helper()
	all, next := map[string]map[string]any{}, ""
	for {
		page := n.get("/api/v2/generations?limit=100&team_id="+team+next, bearer(token)...).want(n.t, 200)
		for _, one := range page["data"].([]any) {
			r := one.(map[string]any)
			all[r["request_id"].(string)] = r
		}
		if page["has_more"] == false {
			return all
		}
		next = "&cursor=" + page["next_cursor"].(string)
	}
}

// settled waits until none of an account's runs is pending.
func (n *node) settled(token, team string) (all map[string]map[string]any) {
	n.t.Helper()
	n.until(token, team, func(r map[string]any) bool { return r["status"] != "pending" })
	return n.runs(token, team)
}

// until waits for all of an account's runs to be so.
func (n *node) until(token, team string, so func(map[string]any) bool) {
	n.t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for tick := time.Tick(50 * time.Millisecond); ; <-tick {
		all := slices.Collect(maps.Values(n.runs(token, team)))
		if !slices.ContainsFunc(all, func(r map[string]any) bool { return !so(r) }) {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("waited in vain; the runs are %v", all)
		}
	}
}

// balance is what /me says of one account: tokens and held.
func (n *node) balance(token, id string) (tokens, held float64) {
	n.t.Helper()
	for _, one := range n.get("/api/v2/me", bearer(token)...).want(n.t, 200)["accounts"].([]any) {
		account := one.(map[string]any)
		if id == "" && account["kind"] == "PERSONAL" || account["id"] == id {
			b := account["balance"].(map[string]any)
			return b["tokens"].(float64), b["held"].(float64)
		}
	}
	n.t.Fatalf("%s is no account of the caller's", id)
	return 0, 0
}

// started reads how often the engine was started: one line for every attempt
// that it saw, "RUN ATTEMPT".
func started(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
