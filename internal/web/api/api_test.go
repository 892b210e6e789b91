package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atelier/internal/account/accounttest"
	"atelier/internal/account/personaldata"
	"atelier/internal/base/cursor"
	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/toolsync"
	"atelier/internal/file/blob"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/run/runner"
	"atelier/internal/web/api"
	"atelier/internal/web/api/apitest"
	"atelier/internal/web/api/mcp"
	"atelier/internal/web/api/operator"
	"atelier/internal/web/api/wire"
	"atelier/internal/web/httpd"
)

// service is the API on a real listener, with one person and their token.
type service struct {
	t      *testing.T
	db     *sqldb.DB
	site   *accounttest.Site
	url    string
	token  string
	client *http.Client
	keeper *toolsync.Syncer
	parts  api.Parts
	runner *runner.Runner // nil until somebody works
	shut   func()         // waits for all requests, and takes no more

	folder  string        // of the files
	arrived *atomic.Int64 // bytes that the listener has read
	full    *atomic.Bool  // the disk is
}

var limits = api.Limits{
	JSONBytes: 1 << 20, JSONDepth: 64, PageSize: 100, PageDefault: 24, ToolsPageDefault: 100,
	FileBytes: 50 << 20, RequestBytes: 250 << 20, KeyLength: 255,
}

func startService(t *testing.T, db *sqldb.DB, l api.Limits) *service {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	folder := t.TempDir()
	blobs, err := blob.Open(t.Context(), "file://"+folder, blob.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, db: db, folder: folder, arrived: new(atomic.Int64), full: new(atomic.Bool), client: apitest.Client(t), site: accounttest.New(t, db, accounttest.Options{})}
	cat := catalog.New(db, log)
	s.keeper = &toolsync.Syncer{DB: db, Blobs: blobs, Catalog: cat, Log: log, Now: time.Now}
	s.parts = api.Parts{
		Gate: s.site.Gate, Accounts: s.site.Accounts, Companies: s.site.Companies, PersonalData: &personaldata.Service{DB: db, Blobs: blobs, Queue: s.site.Queue}, DB: db, Blobs: blobs, Catalog: cat, Cursors: cursor.New([]byte("a key")), BaseURL: "https://atelier.example", Limits: l, Now: time.Now,
	}
	s.parts.OpenAI = &api.OpenAI{Wait: time.Minute}
	s.parts.OAuth = &api.OAuth{Registers: true}
	s.parts.MCP = &api.MCP{Wait: time.Minute, Settings: mcp.Settings{MaxTools: 50, InlineBytes: 1 << 20, BodyBytes: 4 << 20}}
	s.parts.Installation = operator.Installation{Version: "2.0.0-test", Started: db.Now(), StorageState: func() string { return "ok" }}
	s.parts.Space = func() error {
		if s.full.Load() {
			return fault.New(fault.Unavailable, "The disk is full.")
		}
		return nil
	}
	s.addRuns(log)
	h, err := api.New(s.parts)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(httpd.New(h, httpd.Options{Log: log, Metrics: prometheus.NewRegistry(), Health: &httpd.Health{Now: time.Now}, Now: time.Now, DatabaseBudget: time.Minute}))
	server.Listener = counted{server.Listener, s.arrived}
	server.Start()
	s.shut = server.Close
	t.Cleanup(s.shut)
	s.url, s.token = server.URL, s.addPerson("anna@example.com")
	return s
}

// addPerson makes somebody and gives their token.
func (s *service) addPerson(email string) (token string) {
	s.t.Helper()
	s.site.Person(email)
	_, token = s.site.Token(email, "")
	return token
}

// setCatalog makes the catalog be what the files say.
func (s *service) setCatalog(files fs.FS) {
	s.t.Helper()
	s.keeper.Folders = []catalog.ManifestFolder{{Source: catalog.Directory, Files: files, Name: "dir"}}
	if err := s.keeper.LoadCatalog(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// answer is what came back.
type answer struct {
	*http.Response
	body []byte
}

func (s *service) sendRequest(method, path string, header ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	for i := 0; i < len(header); i += 2 {
		r.Header.Del(header[i])
		if header[i+1] != "" {
			r.Header.Set(header[i], header[i+1])
		}
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{res, body}
}

func getJSON[T any](s *service, path string) (v T) {
	s.t.Helper()
	a := s.sendRequest("GET", path)
	if a.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s = %d %s", path, a.StatusCode, a.body)
	}
	if err := json.Unmarshal(a.body, &v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (a answer) readError(t *testing.T) wire.ErrorBody {
	t.Helper()
	if a.Request != nil && a.Request.URL != nil && strings.HasPrefix(a.Request.URL.Path, "/v1/") {
		return decodeAnswer[openAIError](t, a).Error.Atelier
	}
	return decodeAnswer[wire.Error](t, a).Error
}

func manifest(name, more string) string {
	return fmt.Sprintf("name: %q\nprice: {type: COST, tokens: 3}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n%s\n", name, more)
}

func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

func manyTools(n int) fstest.MapFS {
	m := fstest.MapFS{}
	for i := range n {
		m[fmt.Sprintf("t%04d.yaml", i)] = &fstest.MapFile{Data: []byte(manifest(fmt.Sprintf("Tool %04d", i), ""))}
	}
	return m
}

func eachDatabase(t *testing.T, fn func(t *testing.T, s *service)) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) { fn(t, startService(t, db, limits)) })
}

func TestRoutesAreTheDocuments(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		c, err := apitest.Load()
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range c.ListOperations() {
			method, path, _ := strings.Cut(op, " ")
			a := s.sendRequest(method, strings.NewReplacer("{tool_id}", "abcdefghij0123456789").Replace(path)+"?"+queries[op])
			if a.StatusCode == http.StatusMethodNotAllowed || a.StatusCode == 404 && !strings.Contains(path, "{") {
				t.Errorf("%s is in the document and answers %d", op, a.StatusCode)
			}
		}
		documented := c.ListOperations()
		for _, rt := range api.Routes() {
			if strings.Contains(rt, " /api/") && !slices.Contains(documented, rt) {
				t.Errorf("%s is served and not in the document", rt)
			}
		}
		if got := s.sendRequest("GET", "/api/v2/openapi.json", "Authorization", ""); got.StatusCode != 200 || !bytes.Contains(got.body, []byte(`"openapi":"3.1.0"`)) {
			t.Errorf("openapi.json without a token = %d %.80s", got.StatusCode, got.body)
		}
	})
}

func TestUnauthenticatedAnswersAreEqual(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		forged := s.token[:len(s.token)-1] + "0"
		if forged == s.token {
			forged = s.token[:len(s.token)-1] + "1"
		}
		other := "atl_p_00000000000000000000000000000000000000000003wMQX1" // well-formed or not, unknown
		for _, path := range []string{"/api/v2/tools", "/api/v2/tools/abcdefghij0123456789", "/api/v2/tool-tags", "/api/v2/kits", "/api/v2/tools?limit=0"} {
			var first string
			for _, header := range []string{"", "Bearer", "Bearer x", "Basic " + s.token, "Bearer " + forged, "Bearer " + other, s.token} {
				a := s.sendRequest("GET", path, "Authorization", header, "Cookie", "session="+s.token)
				e := a.readError(t)
				if a.StatusCode != 401 || e.Code != "UNAUTHENTICATED" || e.Retryable {
					t.Errorf("%s with %q = %d %s", path, header, a.StatusCode, a.body)
				}
				body := strings.Replace(string(a.body), e.TraceID, "", 1)
				if first == "" {
					first = body
				}
				if body != first {
					t.Errorf("%s with %q answers %s, another credential %s", path, header, body, first)
				}
			}
		}
	})
}

func TestErrorsOfTheList(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		s.setCatalog(manyTools(3))
		bert := *s
		bert.token = s.addPerson("bert@example.com")
		page := getJSON[wire.ToolList](s, "/api/v2/tools?limit=1")
		c := *page.NextCursor
		for _, x := range []struct{ query, code, path, reason string }{
			{"limit=0", "INVALID_REQUEST", "limit", ""},
			{"limit=101", "INVALID_REQUEST", "limit", ""},
			{"limit=x", "INVALID_REQUEST", "limit", ""},
			{"limit=-1", "INVALID_REQUEST", "limit", ""},
			{"limit=1.5", "INVALID_REQUEST", "limit", ""},
			{"limit=%2B5", "INVALID_REQUEST", "limit", ""},
			{"limit=05", "INVALID_REQUEST", "limit", ""},
			{"limit=", "INVALID_REQUEST", "limit", ""},
			{"limit=99999999999999999999", "INVALID_REQUEST", "limit", ""},
			{"limit=1&limit=2", "INVALID_REQUEST", "limit", ""},
			{"tool_tag=image", "INVALID_REQUEST", "tool_tag", ""},
			{"tool_tag=%00", "INVALID_REQUEST", "tool_tag", ""},
			{"cursor=x", "INVALID_REQUEST", "cursor", ""},
			{"cursor=" + c[:len(c)-1], "INVALID_REQUEST", "cursor", ""},
			{"cursor=" + c + "A", "INVALID_REQUEST", "cursor", ""},
			{"cursor=" + altered(c, 0), "INVALID_REQUEST", "cursor", ""},
			{"cursor=" + c + "&tool_tag=abcdefghij0123456789", "INVALID_REQUEST", "cursor", ""},
			{"limit=%zz", "INVALID_REQUEST", "query", ""},
			{"team_id=a,b", "ACCOUNT_SELECTION_INVALID", "", "several"},
			{"team_id=a&team_id=b", "ACCOUNT_SELECTION_INVALID", "", "several"},
			{"team_id=a-b", "ACCOUNT_SELECTION_INVALID", "", "malformed"},
			{"team_id=abcdefghij0123456789", "ACCOUNT_SELECTION_INVALID", "", "team_not_allowed"},
		} {
			a := s.sendRequest("GET", "/api/v2/tools?"+x.query)
			e := a.readError(t)
			if a.StatusCode != 400 || string(e.Code) != x.code || e.Retryable {
				t.Errorf("%s = %d %s, want 400 %s", x.query, a.StatusCode, a.body, x.code)
			}
			if x.path != "" && !strings.Contains(string(a.body), `"path":"`+x.path+`"`) {
				t.Errorf("%s = %s, want a problem with %s", x.query, a.body, x.path)
			}
			if x.reason != "" && e.Details["reason"] != x.reason {
				t.Errorf("%s = %s, want reason %s", x.query, a.body, x.reason)
			}
		}
		for _, path := range []string{"/api/v2/tools/abcdefghij0123456789", "/api/v2/tool-tags", "/api/v2/kits"} {
			for query, want := range map[string]string{"?x=%zz": "INVALID_REQUEST", "?team_id=a,b": "ACCOUNT_SELECTION_INVALID"} {
				if a := s.sendRequest("GET", path+query); a.StatusCode != 400 || string(a.readError(t).Code) != want {
					t.Errorf("%s%s = %d %s, want %s", path, query, a.StatusCode, a.body, want)
				}
			}
		}
		a := s.sendRequest("GET", "/api/v2/tools?limit=0&tool_tag=x&cursor=")
		if n := strings.Count(string(a.body), `"path"`); n != 2 {
			t.Errorf("two mistakes give %d problems: %s", n, a.body)
		}
		if a := bert.sendRequest("GET", "/api/v2/tools?cursor="+c); a.StatusCode != 400 {
			t.Errorf("another person's cursor = %d, want 400", a.StatusCode)
		}
		if got := getJSON[wire.ToolList](s, "/api/v2/tools?limit=100&team_id=&unknown=1&cursor="); len(got.Data) != 3 {
			t.Errorf("%d tools with empty and unknown parameters, want 3", len(got.Data))
		}
	})
}

func TestPathsAndMethods(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		for _, x := range []struct {
			method, path string
			status       int
			allow        string
		}{
			{"GET", "/api/v2/nowhere", 404, ""},
			{"GET", "/api/", 404, ""},
			{"GET", "/api/v1/tools", 404, ""},
			{"GET", "/api/v2/tools/", 404, ""},
			{"GET", "/api/v2/me/x.css", 404, ""},
			{"GET", "/api/v2/tools/abcdefghij0123456789", 404, ""},
			{"GET", "/api/v2/tools/%00%27", 404, ""},
			{"POST", "/api/v2/tools", 405, "GET, HEAD"},
			{"DELETE", "/api/v2/tools/abcdefghij0123456789", 405, "GET, HEAD"},
			{"OPTIONS", "/api/v2/kits", 405, "GET, HEAD"},
			{"BREW", "/api/v2/kits", 405, "GET, HEAD"},
			{"HEAD", "/api/v2/tools", 200, ""},
		} {
			a := s.sendRequest(x.method, x.path)
			if a.StatusCode != x.status || a.Header.Get("Allow") != x.allow {
				t.Errorf("%s %s = %d, allow %q, want %d, %q", x.method, x.path, a.StatusCode, a.Header.Get("Allow"), x.status, x.allow)
			}
			if h := a.Header.Get("Access-Control-Allow-Origin"); h != "" {
				t.Errorf("%s %s allows the origin %s", x.method, x.path, h)
			}
		}
	})
}

// pageThrough follows the cursors to the end and calls between after each page.
func (s *service) pageThrough(query string, between func(page int)) []string {
	s.t.Helper()
	var names []string
	next := ""
	for page := 0; ; page++ {
		list := getJSON[wire.ToolList](s, "/api/v2/tools?"+query+next)
		for _, tool := range list.Data {
			names = append(names, tool.Name)
		}
		if list.HasMore != (list.NextCursor != nil) {
			s.t.Fatalf("has_more %v with cursor %v", list.HasMore, list.NextCursor)
		}
		if !list.HasMore {
			return names
		}
		if page > 300 {
			s.t.Fatal("the pages do not end")
		}
		next = "&cursor=" + *list.NextCursor
		between(page)
	}
}

// TestPagingWhileTheCatalogMoves adds and removes tools between pages: those
// that stay are listed once each, in order.
func TestPagingWhileTheCatalogMoves(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		f := manyTools(10)
		s.setCatalog(f)
		for limit := 1; limit <= 11; limit += 3 {
			got := s.pageThrough(fmt.Sprint("limit=", limit), func(page int) {
				f["t0000a.yaml"] = &fstest.MapFile{Data: []byte(manifest(fmt.Sprintf("Tool 0000 %d", page), ""))}     // before the page
				f["t0009a.yaml"] = &fstest.MapFile{Data: []byte(manifest(fmt.Sprintf("Tool 0009 %d", page%2), ""))}   // at the end
				f["t0004a.yaml"] = &fstest.MapFile{Data: []byte(manifest(fmt.Sprintf("Tool 0004 %d", 9-page%9), ""))} // in the middle
				if page%2 == 1 {
					delete(f, "t0000a.yaml")
				}
				s.setCatalog(f)
			})
			var stayed []string
			for _, name := range got {
				if len(name) == len("Tool 0000") {
					stayed = append(stayed, name)
				}
			}
			var want []string
			for i := range 10 {
				want = append(want, fmt.Sprintf("Tool %04d", i))
			}
			if !slices.Equal(stayed, want) {
				t.Errorf("limit %d lists %v, want each of %v once", limit, stayed, want)
			}
		}
		got := s.pageThrough("limit=2", func(page int) {
			if page == 0 { // the very tool that the cursor names goes away
				delete(f, "t0001.yaml")
				delete(f, "t0000a.yaml")
				s.setCatalog(f)
			}
		})
		if slices.Index(got, "Tool 0002") < 0 || len(got) < 9 {
			t.Errorf("after the last tool of a page was removed: %v", got)
		}
	})
}

func TestTags(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		s.setCatalog(files(
			"a.yaml", manifest("A", "tags: [one, secret]"), "b.yaml", manifest("B", "tags: [one, two]"), "c.yaml", manifest("C", ""),
			"tags.yaml", "one: {type: MEDIA, label: One}\ntwo: {type: FAMILY, label: Two}\nsecret: {type: MEDIA, label: Secret, internal: true}",
		))
		vocabulary := getJSON[wire.ToolTagList](s, "/api/v2/tool-tags")
		if !slices.Equal(vocabulary.Types, []string{"FAMILY", "MEDIA"}) || len(vocabulary.Data) != 2 || vocabulary.Data[1].Label != "One" {
			t.Errorf("vocabulary = %+v", vocabulary)
		}
		one := vocabulary.Data[1].ID
		got := s.pageThrough("limit=1&tool_tag="+one, func(int) {})
		if !slices.Equal(got, []string{"A", "B"}) {
			t.Errorf("tools with One = %v, want A, B", got)
		}
		var secret string
		if err := s.db.QueryRow(t.Context(), `SELECT id FROM tool_tag WHERE slug = 'secret'`).Scan(&secret); err != nil {
			t.Fatal(err)
		}
		hidden, unknown := s.sendRequest("GET", "/api/v2/tools?tool_tag="+secret), s.sendRequest("GET", "/api/v2/tools?tool_tag=abcdefghij0123456789")
		if hidden.StatusCode != 200 || !bytes.Equal(hidden.body, unknown.body) {
			t.Errorf("an internal tag answers %s, an unknown one %s", hidden.body, unknown.body)
		}
		for _, path := range []string{"/api/v2/tools", "/api/v2/tool-tags", "/api/v2/kits"} {
			if a := s.sendRequest("GET", path); bytes.Contains(a.body, []byte("Secret")) {
				t.Errorf("%s shows an internal tag: %s", path, a.body)
			}
		}
	})
}

func TestDetail(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		dir := filepath.Join("..", "..", "catalog", "catalog", "testdata", "everything")
		text, err := os.ReadFile(filepath.Join(dir, "everything.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		f := files("everything.yaml", strings.Replace(string(text), "visibility:", "visibility: everyone\nposition2:", 1))
		f["everything.yaml"].Data = bytes.Replace(f["everything.yaml"].Data, []byte("position2: {companies: [abcdefghij0123456789], teams: [ABCDEFGHIJ0123456789], roles: [artist]}\n"), nil, 1)
		for _, name := range []string{"dot.png", "tags.yaml", "kits.yaml"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			f[name] = &fstest.MapFile{Data: data}
		}
		s.setCatalog(f)
		list := getJSON[wire.ToolList](s, "/api/v2/tools")
		if len(list.Data) != 1 {
			t.Fatalf("tools = %+v", list)
		}
		a := s.sendRequest("GET", "/api/v2/tools/"+list.Data[0].ID)
		checkGolden(t, "detail.json", a.body, list.Data[0].ID)
		if again := s.sendRequest("GET", "/api/v2/tools/"+list.Data[0].ID); !bytes.Equal(again.body, a.body) {
			t.Error("two reads of one tool differ")
		}
		if bySlug := s.sendRequest("GET", "/api/v2/tools/everything"); !bytes.Equal(bySlug.body, a.body) {
			t.Errorf("the tool by its slug = %d %s, want the same as by its id", bySlug.StatusCode, bySlug.body)
		}
		kits := s.sendRequest("GET", "/api/v2/kits")
		checkGolden(t, "kits.json", kits.body, list.Data[0].ID)

		// The avatar's address works, without a token, and is a PNG.
		path, ok := strings.CutPrefix(*list.Data[0].AvatarURL, "https://atelier.example")
		if !ok {
			t.Fatalf("avatar_url = %s", *list.Data[0].AvatarURL)
		}
		picture := s.sendRequest("GET", path, "Authorization", "")
		if _, err := png.DecodeConfig(bytes.NewReader(picture.body)); err != nil || picture.Header.Get("Content-Type") != "image/png" ||
			picture.Header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
			t.Errorf("avatar = %d %v %v", picture.StatusCode, picture.Header, err)
		}
		for _, bad := range []string{"/catalog/" + strings.Repeat("0", 64) + ".png", "/catalog/x.png", "/catalog/..%2f..%2fkeys", "/catalog/" + strings.Repeat("0", 64)} {
			if a := s.sendRequest("GET", bad); a.StatusCode != 404 {
				t.Errorf("%s = %d, want 404", bad, a.StatusCode)
			}
		}
	})
}

// checkGolden compares an answer with testdata, ids and times put aside. Set
// UPDATE=1 to rewrite the files.
func checkGolden(t *testing.T, name string, body []byte, toolID string) {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(any) any
	walk = func(n any) any {
		switch n := n.(type) {
		case map[string]any:
			for k, c := range n {
				switch k {
				case "id", "uuid", "created", "updated", "default_tool_id":
					if s, ok := c.(string); ok && (k != "id" || len(s) == 20) {
						n[k] = "(" + k + ")"
						continue
					}
				}
				n[k] = walk(c)
			}
		case []any:
			for i := range n {
				n[i] = walk(n[i])
			}
		}
		return n
	}
	got, err := json.MarshalIndent(walk(v), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(bytes.ReplaceAll(got, []byte(toolID), []byte("(tool)")), '\n')
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got\n%s", path, got)
	}
}

func TestETag(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		f := manyTools(3)
		s.setCatalog(f)
		id := getJSON[wire.ToolList](s, "/api/v2/tools").Data[0].ID
		for _, path := range []string{"/api/v2/tools", "/api/v2/tools?limit=1", "/api/v2/tools/" + id, "/api/v2/tool-tags", "/api/v2/kits"} {
			first := s.sendRequest("GET", path)
			tag := first.Header.Get("ETag")
			for _, header := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
				if a := s.sendRequest("GET", path, "If-None-Match", header); a.StatusCode != 304 || a.Header.Get("ETag") != tag {
					t.Errorf("%s with %s = %d %s, want 304 %s", path, header, a.StatusCode, a.Header.Get("ETag"), tag)
				}
			}
			if a := s.sendRequest("GET", path, "If-None-Match", `"other"`); a.StatusCode != 200 || !bytes.Equal(a.body, first.body) {
				t.Errorf("%s with another tag = %d", path, a.StatusCode)
			}
			if a := s.sendRequest("GET", path, "If-None-Match", tag, "Authorization", ""); a.StatusCode != 401 || a.Header.Get("ETag") != "" {
				t.Errorf("%s without a token = %d, ETag %q, want 401 and none", path, a.StatusCode, a.Header.Get("ETag"))
			}
		}
		tag := s.sendRequest("GET", "/api/v2/tools").Header.Get("ETag")
		f["t0000.yaml"].Data = []byte(manifest("Tool 0000!", ""))
		s.setCatalog(f)
		if a := s.sendRequest("GET", "/api/v2/tools", "If-None-Match", tag); a.StatusCode != 200 || !bytes.Contains(a.body, []byte("Tool 0000!")) {
			t.Errorf("after an edit = %d %s, want the new page", a.StatusCode, a.body)
		}
	})
}

// TestPagesUnderChange reads pages while the catalog changes; run with -race.
func TestPagesUnderChange(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		s.setCatalog(manyTools(20))
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 30 {
					if a := s.sendRequest("GET", "/api/v2/tools?limit=7"); a.StatusCode != 200 {
						t.Errorf("%d %s", a.StatusCode, a.body)
					}
				}
			})
		}
		for i := range 5 {
			s.setCatalog(manyTools(15 + i))
		}
		group.Wait()
	})
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		l := limits
		l.RequestsPerMinute = 5
		s := startService(t, db, l)
		bert := *s
		bert.token = s.addPerson("bert@example.com")
		for range 5 {
			if a := s.sendRequest("GET", "/api/v2/kits"); a.StatusCode != 200 {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
		}
		a := s.sendRequest("GET", "/api/v2/kits")
		if e := a.readError(t); a.StatusCode != 429 || e.Code != "RATE_LIMITED" || !e.Retryable || a.Header.Get("Retry-After") == "" {
			t.Errorf("6th call = %d %s", a.StatusCode, a.body)
		}
		if a := bert.sendRequest("GET", "/api/v2/kits"); a.StatusCode != 200 {
			t.Errorf("another person's call = %d", a.StatusCode)
		}
		got := 0
		for range 10 {
			if s.sendRequest("GET", "/api/v2/kits", "Authorization", "").StatusCode == 429 {
				got++
			}
		}
		if got != 5 {
			t.Errorf("%d of 10 calls without a token were limited, want 5", got)
		}
	})
}

// TestDatabaseAway cuts the database off: no call may succeed, and each says
// that it can be tried again.
func TestDatabaseAway(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		s.setCatalog(manyTools(1))
		want := 500 // an embedded database does not go away; closing it is an accident
		if s.db.Pool() == nil {
			s.db.Close()
		} else {
			want = 503
			admin := dbtest.Open(t, dbtest.URL(t, "postgres"))
			var name string
			if err := s.db.QueryRow(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
				t.Fatal(err)
			}
			for _, cut := range []string{`ALTER DATABASE ` + name + ` ALLOW_CONNECTIONS false`, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '` + name + `'`} {
				if err := admin.Write(t.Context(), func(tx *sqldb.Tx) error { _, err := tx.Exec(t.Context(), cut); return err }); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 5 {
			a := s.sendRequest("GET", "/api/v2/tools")
			if e := a.readError(t); a.StatusCode != want || !e.Retryable || strings.Contains(strings.ToLower(string(a.body)), "sql") {
				t.Errorf("without a database = %d %s, want %d", a.StatusCode, a.body, want)
			}
		}
	})
}

func TestHidden(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		s.setCatalog(files("open.yaml", manifest("Open", ""), "team.yaml", manifest("Team", "visibility: {teams: [abcdefghij0123456789]}"),
			"kits.yaml", "k: {label: Hidden kit, tools: [{tool: team}]}\nl: {label: Mixed, default: team, tools: [{tool: team}, {tool: open}]}"))
		if got := s.pageThrough("", func(int) {}); !slices.Equal(got, []string{"Open"}) {
			t.Errorf("tools = %v", got)
		}
		var id string
		if err := s.db.QueryRow(t.Context(), `SELECT id FROM tool WHERE slug = 'team'`).Scan(&id); err != nil {
			t.Fatal(err)
		}
		hidden, missing := s.sendRequest("GET", "/api/v2/tools/"+id), s.sendRequest("GET", "/api/v2/tools/abcdefghij0123456789")
		if hidden.StatusCode != 404 || hidden.readError(t).Message != missing.readError(t).Message {
			t.Errorf("hidden = %s, missing = %s, want the same", hidden.body, missing.body)
		}
		if bySlug := s.sendRequest("GET", "/api/v2/tools/team"); bySlug.StatusCode != 404 {
			t.Errorf("a hidden tool by its slug = %d %s, want 404", bySlug.StatusCode, bySlug.body)
		}
		kits := getJSON[wire.KitList](s, "/api/v2/kits")
		if len(kits.Data) != 1 || kits.Data[0].Label != "Mixed" || len(kits.Data[0].Tools) != 1 || kits.Data[0].DefaultToolID != kits.Data[0].Tools[0].Tool.ID {
			t.Errorf("kits = %+v", kits)
		}
	})
}

// TestRolesLimitTools has a team whose roles allow and block tools.
func TestRolesLimitTools(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		s.setCatalog(manyTools(4))
		ids := map[string]string{}
		for _, tool := range getJSON[wire.ToolList](s, "/api/v2/tools").Data {
			ids[tool.Name] = tool.ID
		}
		names := slices.Sorted(maps.Keys(ids))
		studio := s.site.Company("Studio", company.TeamPlan)
		team := s.site.Team(studio, "Look", "member", "anna@example.com")
		_, s.token = s.site.Token("anna@example.com", studio)
		for _, test := range []struct {
			name             string
			allowed, blocked []string
			want             []string
		}{
			{"no lists", nil, nil, names},
			{"one allowed", names[1:2], nil, names[1:2]},
			{"one blocked", nil, names[:1], names[1:]},
			{"blocked beats allowed", names[:2], names[:1], names[1:2]},
		} {
			role := roleWith(ids, test.allowed, test.blocked)
			if _, err := s.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), team, role); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range getJSON[wire.ToolList](s, "/api/v2/tools?team_id="+team).Data {
				got = append(got, tool.Name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s: tools = %v, want %v", test.name, got, test.want)
			}
			for name, id := range ids {
				want := http.StatusNotFound
				if slices.Contains(test.want, name) {
					want = http.StatusOK
				}
				if a := s.sendRequest("GET", "/api/v2/tools/"+id+"?team_id="+team); a.StatusCode != want {
					t.Errorf("%s: %s = %d, want %d", test.name, name, a.StatusCode, want)
				}
			}
		}
	})
}

// roleWith makes the role member with lists of tools by name.
func roleWith(ids map[string]string, allowed, blocked []string) company.TeamRole {
	list := func(names []string) (all []string) {
		for _, name := range names {
			all = append(all, ids[name])
		}
		slices.Sort(all)
		return all
	}
	return company.TeamRole{
		Name: company.RoleMember, Permissions: []company.Permission{company.Generate, company.UsePlugins}, PluginKinds: []string{company.AnyKind},
		ToolsAllowed: list(allowed), ToolsBlocked: list(blocked),
	}
}
