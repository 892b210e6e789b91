package api_test

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"atelier/internal/base/ids"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
	"atelier/internal/web/api/wire"
)

func (s *service) upload(query string, data []byte) wire.Upload {
	s.t.Helper()
	a := s.send("POST", "/api/v2/uploads"+query, "application/octet-stream", bytes.NewReader(data))
	if a.StatusCode != 201 {
		s.t.Fatalf("upload = %d %s", a.StatusCode, a.body)
	}
	return decodeAnswer[wire.Upload](s.t, a)
}

func TestUploads(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		raw := m.upload("?name=fox.png", picture(30, 20))
		kind, body := form(part{name: "note", data: "x"}, part{name: "file", file: "fox.png", kind: "image/png", data: string(picture(30, 20))}, part{name: "files", data: "another"})
		formed := decodeAnswer[wire.Upload](t, m.send("POST", "/api/v2/uploads", kind, body).checkStatus(t, "a form", 201, ""))
		for _, u := range []wire.Upload{raw, formed} {
			if u.Name != "fox.png" || u.MimeType != "image/png" || u.Type != "IMG" || u.Width == nil || *u.Width != 30 || *u.Height != 20 || u.ThumbURL == nil || u.Blurhash == nil || u.PreviewURL != nil || u.DurationSeconds != nil || !ids.Valid(u.ID) {
				t.Errorf("upload = %+v", u)
			}
			if a := m.fetch("GET", u.URL); a.StatusCode != 200 || int64(len(a.body)) != u.SizeBytes {
				t.Errorf("its file = %d with %d bytes, want %d", a.StatusCode, len(a.body), u.SizeBytes)
			}
		}
		if raw.Sha256 != formed.Sha256 || raw.ID == formed.ID {
			t.Errorf("the same file twice = %+v and %+v", raw, formed)
		}
		sound := m.upload("", tone(4*48_000+44))
		if sound.Name != "" || sound.Type != "AUDIO" || sound.Width != nil || sound.DurationSeconds == nil || *sound.DurationSeconds != 0.25 || sound.ThumbURL != nil || sound.Blurhash != nil {
			t.Errorf("a sound = %+v", sound)
		}
		if got := getJSON[wire.Upload](m.service, "/api/v2/uploads/"+raw.ID); got.ID != raw.ID || got.Name != raw.Name {
			t.Errorf("by id = %+v", got)
		}
		// Runs can work on it, for its account alone.
		use := func(id string) string {
			return m.body("one", `,"inputs":{"picture":{"kind":"UPLOAD_REF","id":"`+id+`"}}`)
		}
		m.create(use(raw.ID)).checkStatus(t, "a run with an upload", 202, "")
		m.create(use(sound.ID)).checkStatus(t, "a run with a sound for a picture", 400, "INVALID_REQUEST")
		bert := m.as(m.addPerson("bert@example.com"))
		m.grant("bert@example.com", "", 10)
		m.unchanged("a foreign upload", func() {
			foreign, missing := bert.create(use(raw.ID)), bert.create(use(ids.New()))
			if foreign.StatusCode != 400 || foreign.comparableText(t) != missing.comparableText(t) {
				t.Errorf("a foreign upload = %s, a missing one %s", foreign.body, missing.body)
			}
		})

		m.sendRequest("DELETE", "/api/v2/uploads/"+raw.ID).checkStatus(t, "delete", 204, "")
		m.sendRequest("DELETE", "/api/v2/uploads/"+raw.ID).checkStatus(t, "delete again", 404, "NOT_FOUND")
		m.sendRequest("GET", "/api/v2/uploads/"+raw.ID).checkStatus(t, "a deleted one", 404, "NOT_FOUND")
		if a := m.fetch("GET", raw.URL); a.StatusCode != 404 {
			t.Errorf("the file of a deleted one = %d", a.StatusCode)
		}
		m.create(use(raw.ID)).checkStatus(t, "a run with a deleted one", 400, "INVALID_REQUEST")
	})
}

// TestDurationOfUploads has a sound that plays for a part of a millisecond: the
// answer to the upload and every later one say the same.
func TestDurationOfUploads(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		for samples, want := range map[int]string{
			214_656: "1.118", // exactly, and 1.1179999999999999 as a sum
			214_757: "1.119", // 1.118526 s
			96_000:  "0.5",
		} {
			a := m.send("POST", "/api/v2/uploads", "application/octet-stream", bytes.NewReader(tone(44+4*samples))).checkStatus(t, "upload", 201, "")
			later := m.sendRequest("GET", "/api/v2/uploads/"+decodeAnswer[wire.Upload](t, a).ID)
			for _, one := range []answer{a, later} {
				if !strings.Contains(string(one.body), `"duration_seconds":`+want+`,`) {
					t.Errorf("%d samples: %s, want %s seconds", samples, one.body, want)
				}
			}
		}
	})
}

func TestUploadRefusals(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		whole := picture(30, 30)
		noFile, empty := form(part{name: "files", data: string(whole)})
		many, lots := form(append(repeated(part{name: "x", data: "y"}, 64), part{name: "file", data: string(whole)})...)
		m.unchanged("refused uploads", func() {
			for _, x := range []struct {
				name, kind, body string
				status           int
				code             string
			}{
				{"no type", "", string(whole), 415, "UNSUPPORTED_MEDIA_TYPE"},
				{"another type", "text/html", string(whole), 415, "UNSUPPORTED_MEDIA_TYPE"},
				{"SVG", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"/>`, 415, "UNSUPPORTED_MEDIA_TYPE"},
				{"HTML", "text/html", `<html>`, 415, "UNSUPPORTED_MEDIA_TYPE"},
				{"HTML as a picture", "image/png", `<html>`, 415, "UNSUPPORTED_MEDIA_TYPE"},
				{"text", "text/plain", `hello`, 415, "UNSUPPORTED_MEDIA_TYPE"},
				{"PDF", "application/pdf", "%PDF-1.7\n", 415, "UNSUPPORTED_MEDIA_TYPE"},
				{"nothing", "image/png", "", 415, "UNSUPPORTED_MEDIA_TYPE"},
				{"half a picture", "image/png", string(whole[:60]), 400, "INVALID_REQUEST"},
				{"a head alone", "image/png", string(whole[:8]), 400, "INVALID_REQUEST"},
				{"no part", noFile, empty.String(), 400, "INVALID_REQUEST"},
				{"too many parts", many, lots.String(), 400, "INVALID_REQUEST"},
			} {
				m.send("POST", "/api/v2/uploads", x.kind, strings.NewReader(x.body)).checkStatus(t, x.name, x.status, x.code)
			}
			m.send("POST", "/api/v2/uploads?name=a&name=b", "image/png", bytes.NewReader(whole)).checkStatus(t, "two names", 400, "INVALID_REQUEST")
			m.send("POST", "/api/v2/uploads?name=%zz", "image/png", bytes.NewReader(whole)).checkStatus(t, "a broken query", 400, "INVALID_REQUEST")
		})
	})
}

// TestNamesOfUploads brings names that are more than names. None of them is a
// path, and none breaks a line or turns one around.
func TestNamesOfUploads(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		files := m.blobs()
		for i, name := range []string{
			"../../etc/passwd", "..\\..\\x.png", "/etc/passwd", "a\x00b.png", strings.Repeat("n", 4096), strings.Repeat("ü", 4096), "\u202egnp.exe", "a\r\nSet-Cookie: x=y", "con.png", "nul", ".", "..", "~", "-rf",
			"$(touch x).png", "a;b|c.png", `"quoted".png`, "<script>.png", "\xff\xfe.png", "%2e%2e%2f", "\u2028x", "x.png\u200b", "  x  ", "\x1b[31m", "c:\\x", "file://x", "🎨.png", "a/b/c", "\ufeff",
		} {
			given := m.upload("?name="+url.QueryEscape(name), picture(2+i, 2))
			if !utf8.ValidString(given.Name) || utf8.RuneCountInString(given.Name) > 255 || strings.ContainsFunc(given.Name, unicode.IsControl) || strings.ContainsAny(given.Name, "\u202e\u2028") {
				t.Errorf("%.40q is kept as %q", name, given.Name)
			}
			a := m.fetch("GET", given.URL)
			_, saved, _ := strings.Cut(a.Header.Get("Content-Disposition"), "filename")
			if a.StatusCode != 200 || strings.ContainsAny(saved, "/\\\r\n") && !strings.Contains(saved, "*=utf-8''") {
				t.Errorf("%.40q = %d, disposition %q", name, a.StatusCode, a.Header.Get("Content-Disposition"))
			}
		}
		if n := m.blobs() - files; n < 29 {
			t.Errorf("there are %d files", n)
		}
		for item, err := range m.parts.Blobs.List(t.Context(), "") {
			if err != nil || !strings.HasPrefix(item.Key, "media/") {
				t.Errorf("there is a file %v %v", item.Key, err)
			}
		}
	})
}

func TestUploadsPage(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		want := map[string]bool{}
		for i := range 7 {
			want[m.upload("", picture(2+i, 2)).ID] = true
		}
		bert := m.as(m.addPerson("bert@example.com"))
		bert.upload("", picture(2, 2))
		next, later := "", map[string]bool{}
		for {
			list := getJSON[wire.UploadList](m.service, "/api/v2/uploads?limit=2"+next)
			for _, u := range list.Data {
				if !want[u.ID] || later[u.ID] {
					t.Errorf("%s is listed twice, or too late, or is another's", u.ID)
				}
				delete(want, u.ID)
			}
			if !list.HasMore {
				break
			}
			next = "&cursor=" + *list.NextCursor
			later[m.upload("", picture(2, 3)).ID] = true
			bert.sendRequest("GET", "/api/v2/uploads?limit=2"+next).checkStatus(t, "another's cursor", 400, "INVALID_REQUEST")
			m.sendRequest("GET", "/api/v2/library?limit=2"+next).checkStatus(t, "a cursor of another list", 400, "INVALID_REQUEST")
		}
		if len(want) > 0 {
			t.Errorf("%d uploads were skipped", len(want))
		}
	})
}

func TestUploadsOfTeams(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.site.Person("bert@example.com")
		m.site.Person("chief@example.com")
		team, tokens := m.team("Look", "anna@example.com", "bert@example.com", "chief@example.com")
		if _, err := m.site.Companies.TeamRoles.SetTeamRole(t.Context(), principal.Operator(), team, company.TeamRole{
			Name: "chief", Permissions: []company.Permission{company.ManageTeam}, PluginKinds: []string{company.AnyKind},
		}); err != nil {
			t.Fatal(err)
		}
		m.site.Join(team, "chief@example.com", "chief")
		anna, bert, chief := m.as(tokens[0]), m.as(tokens[1]), m.as(tokens[2])
		query := "?team_id=" + team
		one, two := anna.upload(query, picture(2, 2)), anna.upload(query, picture(3, 2))
		for _, who := range []*runFixture{anna, bert, chief} {
			if got := getJSON[wire.UploadList](who.service, "/api/v2/uploads"+query); len(got.Data) != 2 {
				t.Errorf("a member sees %d", len(got.Data))
			}
		}
		path := "/api/v2/uploads/" + one.ID
		if a := bert.sendRequest("DELETE", path+query).checkStatus(t, "by another", 403, "FORBIDDEN"); a.readError(t).Details["reason"] != "permission" {
			t.Errorf("by another = %s", a.body)
		}
		chief.sendRequest("DELETE", path+query).checkStatus(t, "by a manager", 204, "")
		anna.sendRequest("DELETE", "/api/v2/uploads/"+two.ID+query).checkStatus(t, "by who brought it", 204, "")
		mine := m.upload("", picture(4, 4))
		for _, id := range []string{mine.ID, ids.New(), "x", "%00", "..%2f", strings.Repeat("a", 20), fmt.Sprint(mine.ID, "x")} {
			for _, method := range []string{"GET", "DELETE"} {
				bert.sendRequest(method, "/api/v2/uploads/"+id+query).checkStatus(t, method+" "+id, 404, "NOT_FOUND")
			}
		}
	})
}
