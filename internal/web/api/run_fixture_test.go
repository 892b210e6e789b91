package api_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/people/company"
	"atelier/internal/run/generation"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

// runFixture is the API with tools to run, and tokens to pay for them.
type runFixture struct {
	*service
	made map[string]wire.ToolDetail // by name
}

const fixtureFields = `
fields:
  - {key: prompt, type: PROMPT, label: Prompt}
  - {key: script, type: TEXT_AREA, label: Script}
  - {key: amount, type: NUM, label: Amount}
  - {key: factor, type: SINGLE_SELECT, label: Factor, options: [{text: Two, value: 2}, {text: Four, value: 4}]}
  - {key: seed, type: SEED, label: Seed}
  - {key: picture, type: IMG, label: Picture}
  - {key: pictures, type: IMGS, label: Pictures}
  - {key: sound, type: AUDIO, label: Sound}
  - {key: model, type: ASSET_3D, label: Model}
  - {key: film, type: VIDEO, label: Film}
`

// eachRunFixture runs fn on both databases with limits that allow many runs.
func eachRunFixture(t *testing.T, fn func(t *testing.T, m *runFixture)) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) { fn(t, newRunFixture(t, db, limits, setHighLimits)) })
}

// setHighLimits raises the limits per person so far that no test reaches them.
func setHighLimits(c *generation.Settings) {
	c.CreatePerMinute, c.CreatePerHour, c.ActiveRuns = 10_000, 10_000, 10_000
}

func keepSettings(*generation.Settings) {}

func newRunFixture(t *testing.T, db *sqldb.DB, l api.Limits, change func(*generation.Settings)) *runFixture {
	t.Helper()
	m := &runFixture{service: startService(t, db, l)}
	p := m.parts.Runs.Parts
	change(&p.Settings)
	*m.parts.Runs = *generation.New(p)
	m.setCatalog(files(
		"many.yaml", manifest("many", "num_results: {min: 2, max: 4, default: 2}\ntags: [fast]"+fixtureFields),
		"wide.yaml", manifest("wide", "num_results: {min: 1, max: 64, default: 1}\ntags: [fast, pictures]"+fixtureFields),
		"tones.yaml", strings.Replace(manifest("tones", "num_results: {min: 1, max: 2, default: 2}\ntags: [fast]"+fixtureFields), "IMG, mime_types: [image/png]", "AUDIO, mime_types: [audio/wav, audio/mpeg]", 1),
		"words.yaml", strings.Replace(manifest("words", fixtureFields), "IMG, mime_types: [image/png]", "TEXT, mime_types: [text/plain]", 1),
		"one.yaml", manifest("one", fixtureFields),
		"asks.yaml", manifest("asks", "fields:\n  - {key: prompt, type: PROMPT, label: Prompt, required: true}\n  - {key: picture, type: IMG, label: Picture, required: true}\n"),
		"gone.yaml", manifest("hidden", "visibility: {teams: [abcdefghij0123456789]}"),
		"tags.yaml", "fast: {type: MODEL_FAMILY, label: Fast}\npictures: {type: MEDIA, label: Pictures}\n",
	))
	m.made = map[string]wire.ToolDetail{}
	for _, one := range getJSON[wire.ToolList](m.service, "/api/v2/tools").Data {
		m.made[one.Name] = getJSON[wire.ToolDetail](m.service, "/api/v2/tools/"+one.ID)
	}
	m.grant("anna@example.com", "", 1000)
	return m
}

func (m *runFixture) grant(email, team string, tokens int64) {
	m.t.Helper()
	if _, err := m.site.Accounts.Grants.GrantByOperator(m.t.Context(), email, team, tokens, "test"); err != nil {
		m.t.Fatal(err)
	}
}

// as returns the service with another token, which has been used before.
func (m *runFixture) as(token string) *runFixture {
	s := *m.service
	s.token = token
	s.sendRequest("GET", "/api/v2/me")
	return &runFixture{service: &s, made: m.made}
}

// team creates a team with tokens, and returns a company token of each member.
func (m *runFixture) team(name string, members ...string) (id string, tokens []string) {
	m.t.Helper()
	c := m.site.Company(name, company.TeamPlan)
	id = m.site.Team(c, name, "member", members...)
	m.grant("", id, 1000)
	for _, email := range members {
		_, token := m.site.Token(email, c)
		tokens = append(tokens, token)
	}
	return id, tokens
}

// body is a create request for a tool; more is further members, from ",".
func (m *runFixture) body(tool, more string) string {
	one, ok := m.made[tool]
	if !ok {
		m.t.Fatalf("there is no tool %s", tool)
	}
	return fmt.Sprintf(`{"tool_id":%q,"tool_fields_hash":%q%s}`, one.ID, one.ToolFieldsHash, more)
}

// steps are inputs with a script for the engine.
func steps(all string) string {
	text, _ := json.Marshal(all)
	return `,"inputs":{"script":` + string(text) + `}`
}

// send makes a request with a body; header is names and values.
func (s *service) send(method, path, kind string, body io.Reader, header ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res, b}
}

func (s *service) create(body string, header ...string) answer {
	s.t.Helper()
	return s.send("POST", "/api/v2/generate", "application/json", strings.NewReader(body), header...)
}

// checkStatus fails the test unless the answer has this status and, if it is an
// error, this code.
func (a answer) checkStatus(t *testing.T, what string, status int, code string) answer {
	t.Helper()
	got := ""
	if a.StatusCode >= 400 {
		got = string(a.readError(t).Code)
	}
	if a.StatusCode != status || got != code {
		t.Errorf("%s = %d %s, want %d %s", what, a.StatusCode, a.body, status, code)
	}
	return a
}

func decodeAnswer[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%s: %v", a.body, err)
	}
	return v
}

// run starts a run and returns its id. query is "?team_id=…" or "".
func (s *service) run(query, body string) string {
	s.t.Helper()
	a := s.send("POST", "/api/v2/generate"+query, "application/json", strings.NewReader(body))
	if a.StatusCode != http.StatusAccepted {
		s.t.Fatalf("create = %d %s", a.StatusCode, a.body)
	}
	return decodeAnswer[wire.GenerationCreated](s.t, a).RequestID
}

// finish waits until a run has ended and returns its record.
func (s *service) finish(query, id string) wire.Generation {
	s.t.Helper()
	for range 600 {
		var status string
		if err := s.db.QueryRow(s.t.Context(), `SELECT status FROM run WHERE id = $1`, id).Scan(&status); err != nil {
			s.t.Fatal(err)
		}
		if status != "pending" {
			return getJSON[wire.Generation](s, "/api/v2/generate/"+id+query)
		}
		<-time.After(20 * time.Millisecond)
	}
	s.t.Fatalf("the run %s does not end", id)
	return wire.Generation{}
}

// done starts a run and waits for its end.
func (s *service) done(query, body string) wire.Generation {
	s.t.Helper()
	return s.finish(query, s.run(query, body))
}

// part is a part of a form.
type part struct {
	name, file, kind string
	data             string
}

func payload(body string) part { return part{name: "payload", kind: "application/json", data: body} }

func file(data []byte) part {
	return part{name: "files", file: "a file", kind: "application/octet-stream", data: string(data)}
}

// form writes a multipart body.
func form(parts ...part) (kind string, body *bytes.Buffer) {
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name=%q`, p.name)
		if p.file != "" {
			disposition += fmt.Sprintf(`; filename=%q`, p.file)
		}
		h.Set("Content-Disposition", disposition)
		if p.kind != "" {
			h.Set("Content-Type", p.kind)
		}
		to, _ := w.CreatePart(h) // writing to a buffer cannot fail
		io.WriteString(to, p.data)
	}
	w.Close()
	return w.FormDataContentType(), body
}

func (s *service) createForm(parts []part, header ...string) answer {
	s.t.Helper()
	kind, body := form(parts...)
	return s.send("POST", "/api/v2/generate", kind, body, header...)
}

func picture(w, h int) []byte {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(i) | 0x80
	}
	m.SetNRGBA(0, 0, color.NRGBA{1, 2, 3, 255})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // writing to a buffer cannot fail
	}
	return b.Bytes()
}

// tone is a WAV file of exactly size bytes.
func tone(size int) []byte {
	const rate = 192_000 // so that a long file is a short sound
	b := make([]byte, 0, size)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size-8))
	b = append(b, "WAVEfmt "...)
	for _, v := range []any{uint32(16), uint16(1), uint16(2), uint32(rate), uint32(4 * rate), uint16(4), uint16(16)} {
		b, _ = binary.Append(b, binary.LittleEndian, v)
	}
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size-44))
	return append(b, make([]byte, size-44)...)
}

// named are inputs that name n files in a field that takes several.
func named(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"kind":"MULTIPART","file_index":%d}`, i)
	}
	return `,"inputs":{"pictures":[` + strings.Join(all, ",") + `]}`
}

func raw(data []byte) string {
	return fmt.Sprintf(`[{"output":{"kind":"raw","base64":%q}}]`, base64.StdEncoding.EncodeToString(data))
}

// fetch gets a file by its address, without any credential.
func (s *service) fetch(method, address string, header ...string) answer {
	s.t.Helper()
	a, err := s.tryFetch(method, address, header...)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// tryFetch is fetch for responses that may be truncated.
func (s *service) tryFetch(method, address string, header ...string) (answer, error) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, strings.Replace(address, "https://atelier.example", s.url, 1), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res, b}, err
}

// state returns the number of rows of every table and the number of files.
func (s *service) state() string {
	s.t.Helper()
	names := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name`
	if s.db.Pool() != nil {
		names = `SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY tablename`
	}
	var text strings.Builder
	err := s.db.Read(s.t.Context(), func(tx *sqldb.Tx) error {
		text.Reset()
		all, err := sqldb.All(s.t.Context(), tx, names, nil, func(row sqldb.Scanner) (name string, err error) {
			err = row.Scan(&name)
			return name, err
		})
		for _, name := range all {
			var n int64
			if err := tx.QueryRow(s.t.Context(), `SELECT count(*) FROM `+name).Scan(&n); err != nil {
				return err
			}
			fmt.Fprintf(&text, "%s %d\n", name, n)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	fmt.Fprintf(&text, "files %d\n", s.blobs())
	return text.String()
}

// blobs counts the files in the store.
func (s *service) blobs() (n int) {
	s.t.Helper()
	for item, err := range s.parts.Blobs.List(s.t.Context(), "media") {
		if err != nil {
			s.t.Fatal(item, err)
		}
		n++
	}
	return n
}

// unchangedRows is unchanged for the rows of three tables only. It does not
// look at files.
func (s *service) unchangedRows(what string, do func()) {
	s.t.Helper()
	count := func() (n [3]int64) {
		for i, table := range []string{"asset", "run", "ledger_entry"} {
			if err := s.db.QueryRow(s.t.Context(), `SELECT count(*) FROM `+table).Scan(&n[i]); err != nil {
				s.t.Fatal(err)
			}
		}
		return n
	}
	before := count()
	do()
	if after := count(); after != before {
		s.t.Errorf("%s: %v rows, then %v", what, before, after)
	}
}

// unchanged fails the test if the function changes rows or files.
func (s *service) unchanged(what string, do func()) {
	s.t.Helper()
	before, now := s.state(), ""
	do()
	if now = s.state(); now == before {
		return
	}
	then := strings.Split(before, "\n")
	for i, line := range strings.Split(now, "\n") {
		if line != then[i] {
			s.t.Errorf("%s left a trace: %s, then %s", what, then[i], line)
		}
	}
}
