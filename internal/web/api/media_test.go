package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/file/blob/blobtest"
	"atelier/internal/people/principal"
	"atelier/internal/web/api"
	"atelier/internal/web/api/wire"
)

func TestFilesAreServedByAddress(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		data := tone(10_044)
		u := m.upload("?name=a%22%C3%BC.exe", data)
		whole := m.fetch("GET", u.URL)
		if whole.StatusCode != 200 || !bytes.Equal(whole.body, data) {
			t.Fatalf("the file = %d with %d bytes", whole.StatusCode, len(whole.body))
		}
		for name, want := range map[string]string{
			"Content-Type": "audio/wav", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox", "Cache-Control": "private, max-age=86400, immutable",
			"Cross-Origin-Resource-Policy": "cross-origin", "Accept-Ranges": "bytes", "Etag": `"` + u.Sha256 + `"`, "Referrer-Policy": "no-referrer", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
		} {
			if got := whole.Header.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
		if d := whole.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "inline") || !strings.Contains(d, ".wav") {
			t.Errorf("the disposition is %q", d)
		}
		head := m.fetch("HEAD", u.URL)
		if head.StatusCode != 200 || head.ContentLength != 10_044 || len(head.body) != 0 || head.Header.Get("Etag") == "" {
			t.Errorf("HEAD = %d, %d bytes", head.StatusCode, head.ContentLength)
		}
		for _, x := range []struct {
			asked       string
			status      int
			from, until int
		}{
			{"bytes=0-0", 206, 0, 1}, {"bytes=0-99", 206, 0, 100}, {"bytes=5000-5999", 206, 5000, 6000}, {"bytes=-44", 206, 10_000, 10_044}, {"bytes=10043-", 206, 10_043, 10_044}, {"bytes=0-", 206, 0, 10_044},
			{"bytes=10000-99999", 206, 10_000, 10_044}, {"bytes=-99999", 206, 0, 10_044}, {"bytes=10044-", 416, 0, 0}, {"bytes=99999-", 416, 0, 0}, {"bytes=5-4", 416, 0, 0}, {"pages=1-2", 416, 0, 0},
		} {
			a := m.fetch("GET", u.URL, "Range", x.asked)
			if a.StatusCode != x.status || x.status == 206 && (!bytes.Equal(a.body, data[x.from:x.until]) || a.Header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/10044", x.from, x.until-1)) {
				t.Errorf("%s = %d, %s, %d bytes", x.asked, a.StatusCode, a.Header.Get("Content-Range"), len(a.body))
			}
			if x.status == 416 && (a.Header.Get("Content-Range") != "bytes */10044" && x.asked != "bytes=5-4" && x.asked != "pages=1-2" || a.Header.Get("X-Content-Type-Options") != "nosniff") {
				t.Errorf("%s = %v", x.asked, a.Header)
			}
		}
		several := m.fetch("GET", u.URL, "Range", "bytes=0-9,100-109,-10")
		if several.StatusCode != 206 || !strings.HasPrefix(several.Header.Get("Content-Type"), "multipart/byteranges") || !bytes.Contains(several.body, data[:10]) {
			t.Errorf("three ranges = %d %s", several.StatusCode, several.Header.Get("Content-Type"))
		}
		tag := whole.Header.Get("Etag")
		for _, x := range []struct {
			name, value, ranged string
			status              int
		}{
			{"If-None-Match", tag, "", 304}, {"If-None-Match", "W/" + tag, "", 304}, {"If-None-Match", "*", "", 304}, {"If-None-Match", `"x"`, "", 200}, {"If-Range", tag, "bytes=0-9", 206}, {"If-Range", `"x"`, "bytes=0-9", 200},
			{"If-Match", tag, "", 200}, {"If-Match", `"x"`, "", 412},
		} {
			header := []string{x.name, x.value}
			if x.ranged != "" {
				header = append(header, "Range", x.ranged)
			}
			if a := m.fetch("GET", u.URL, header...); a.StatusCode != x.status {
				t.Errorf("%s: %s = %d, want %d", x.name, x.value, a.StatusCode, x.status)
			}
		}
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
			if a := m.fetch(method, u.URL); a.StatusCode != 405 {
				t.Errorf("%s = %d", method, a.StatusCode)
			}
		}
		small := m.upload("", picture(40, 30))
		if a := m.fetch("GET", *small.ThumbURL); a.StatusCode != 200 || !strings.HasPrefix(a.Header.Get("Content-Type"), "image/") || a.Header.Get("Content-Security-Policy") != "default-src 'none'; sandbox" {
			t.Errorf("a thumbnail = %d %v", a.StatusCode, a.Header)
		}
	})
}

func TestAlteredAddresses(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		one, two := m.upload("", picture(2, 2)), m.upload("", picture(3, 3))
		good, err := url.Parse(one.URL)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := url.Parse(two.URL)
		bertID := m.site.Person("bert@example.com")
		with := func(change func(u *url.URL, q url.Values)) string {
			u := *good
			q := u.Query()
			change(&u, q)
			u.RawQuery = q.Encode()
			return u.String()
		}
		expired := m.parts.Links
		expired.Lifetime = -1
		bad := map[string]string{
			"no query": strings.Split(one.URL, "?")[0], "another's seal": with(func(_ *url.URL, q url.Values) { q.Set("s", other.Query().Get("s")) }),
			"another file": with(func(u *url.URL, _ url.Values) { u.Path = other.Path }), "another variant": with(func(u *url.URL, _ url.Values) { u.Path = strings.Replace(u.Path, "/file", "/thumb", 1) }),
			"another kind": with(func(u *url.URL, _ url.Values) { u.Path = strings.Replace(u.Path, "/u/", "/r/", 1) }), "another viewer": with(func(_ *url.URL, q url.Values) { q.Set("v", bertID) }),
			"a longer life": with(func(_ *url.URL, q url.Values) { q.Set("e", q.Get("e")+"0") }), "the same life otherwise": with(func(_ *url.URL, q url.Values) { q.Set("e", "0"+q.Get("e")) }),
			"no seal": with(func(_ *url.URL, q url.Values) { q.Del("s") }), "an empty seal": with(func(_ *url.URL, q url.Values) { q.Set("s", "") }), "two seals": one.URL + "&s=x", "an expired one": expired.SignURL("u", one.ID, "file", "x", "a.png"),
		}
		seal := good.Query().Get("s")
		for i := range len(seal) {
			c := byte('A')
			if seal[i] == c {
				c = 'B'
			}
			bad[fmt.Sprint("the seal changed at ", i)] = with(func(_ *url.URL, q url.Values) { q.Set("s", seal[:i]+string(c)+seal[i+1:]) })
		}
		for name, address := range bad {
			a := m.fetch("GET", address)
			if a.StatusCode != 403 || a.readError(t).Details["reason"] != "signature" || a.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s = %d %s", name, a.StatusCode, a.body)
			}
		}
		if a := m.fetch("GET", one.URL+"&utm_source=x"); a.StatusCode != 200 {
			t.Errorf("with a parameter of somebody else's = %d", a.StatusCode)
		}
	})
}

func TestAddressesEndWithTheAccess(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		m.site.Person("bert@example.com")
		team, tokens := m.team("Look", "anna@example.com", "bert@example.com")
		anna, bert := m.as(tokens[0]), m.as(tokens[1])
		query := "?team_id=" + team
		made := anna.done(query, m.body("one", ""))
		annas := *made.Outputs[0].URL
		berts := getJSON[wire.LibraryList](bert.service, "/api/v2/library"+query).Data[0].URL
		if annas == berts {
			t.Error("two people have one address")
		}
		for _, address := range []string{annas, berts} {
			if a := m.fetch("GET", address); a.StatusCode != 200 {
				t.Errorf("a member's address = %d", a.StatusCode)
			}
		}
		if err := m.site.Companies.TeamMembers.RemoveTeamMemberByEmail(t.Context(), principal.Operator(), team, "bert@example.com"); err != nil {
			t.Fatal(err)
		}
		if a := m.fetch("GET", berts); a.StatusCode != 403 {
			t.Errorf("an ex-member's address = %d", a.StatusCode)
		}
		anna.sendRequest("DELETE", "/api/v2/library/"+made.Outputs[0].ID+query).checkStatus(t, "delete", 204, "")
		if a := m.fetch("GET", annas); a.StatusCode != 404 {
			t.Errorf("the address of a deleted result = %d", a.StatusCode)
		}
	})
}

// TestDamagedFiles changes stored files behind the service's back.
func TestDamagedFiles(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		for name, damage := range map[string]func([]byte) []byte{
			"the first byte": func(b []byte) []byte { b[0] ^= 1; return b }, "one in the middle": func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "the last byte": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
			"shorter": func(b []byte) []byte { return b[:len(b)-1] }, "empty": func(b []byte) []byte { return nil }, "longer": func(b []byte) []byte { return append([]byte("x"), b...) },
		} {
			for _, size := range []int{244, 300_044} {
				sound := tone(size)
				copy(sound[60:], name) // a content of its own, which nobody has read before
				u := m.upload("", sound)
				var key string
				if err := m.db.QueryRow(t.Context(), `SELECT a.blob FROM asset a JOIN upload u ON u.asset_id = a.id WHERE u.id = $1`, u.ID).Scan(&key); err != nil {
					t.Fatal(err)
				}
				r, _, err := m.parts.Blobs.Open(t.Context(), key, 0, -1)
				if err != nil {
					t.Fatal(err)
				}
				data, err := io.ReadAll(r)
				if err != nil || r.Close() != nil {
					t.Fatal(err)
				}
				if _, err := m.parts.Blobs.Put(t.Context(), key, bytes.NewReader(damage(data))); err != nil {
					t.Fatal(err)
				}
				for _, ranged := range []string{"", "bytes=0-", "bytes=0-9", "bytes=100-200", "bytes=-10", "bytes=0-0,200-210"} {
					if a, err := m.tryFetch("GET", u.URL, "Range", ranged); err == nil && a.StatusCode/100 == 2 {
						t.Errorf("%s of %d bytes damaged arrives whole with %q: %d, %d bytes", name, size, ranged, a.StatusCode, len(a.body))
					}
				}
			}
		}
		u := m.upload("", picture(5, 5))
		for item, err := range m.parts.Blobs.List(t.Context(), "media") {
			if err != nil || m.parts.Blobs.Delete(t.Context(), item.Key) != nil {
				t.Fatal(err)
			}
		}
		if a := m.fetch("GET", u.URL); a.StatusCode != 404 {
			t.Errorf("a file that is gone = %d", a.StatusCode)
		}
	})
}

// TestURLsStayForADay reads records twice, and again on the next day.
func TestURLsStayForADay(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.work()
		m.upload("", picture(4, 4))
		m.done("", m.body("one", ""))
		now := time.Date(2026, 11, 16, 23, 59, 0, 0, time.UTC)
		s := m.with(func(p *api.Parts) { p.Links.Now = func() time.Time { return now } }, nil)
		read := func() []string {
			item := getJSON[wire.LibraryList](s, "/api/v2/library").Data[0]
			upload := getJSON[wire.UploadList](s, "/api/v2/uploads?type=IMG").Data[0]
			return []string{item.URL, *item.ThumbURL, upload.URL, *upload.ThumbURL}
		}
		first := read()
		now = now.Add(30 * time.Second)
		if again := read(); !slices.Equal(again, first) {
			t.Errorf("URLs = %v, want %v", again, first)
		}
		now = now.Add(time.Minute)
		next := read()
		for i, address := range next {
			if address == first[i] {
				t.Errorf("the next day still has %s", address)
			}
		}
		for _, address := range slices.Concat(first, next) {
			if a := s.fetch("GET", address); a.StatusCode != 200 || a.Header.Get("Cache-Control") != "private, max-age=86400, immutable" {
				t.Errorf("%s = %d, %s", address, a.StatusCode, a.Header.Get("Cache-Control"))
			}
		}
		now = time.Date(2026, 11, 23, 23, 0, 0, 0, time.UTC) // an hour before the first URLs expire
		if a := s.fetch("GET", first[0], "Range", "bytes=0-3"); a.StatusCode != 206 || a.Header.Get("Cache-Control") != "private, max-age=3600, immutable" {
			t.Errorf("an old URL = %d, %s", a.StatusCode, a.Header.Get("Cache-Control"))
		}
		for _, key := range blobtest.Keys(t, m.parts.Blobs, "") {
			if err := m.parts.Blobs.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		for _, address := range first {
			for _, method := range []string{"GET", "HEAD"} {
				if a := s.fetch(method, address); a.StatusCode != 404 || a.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s of a file that is lost = %d, %s", method, a.StatusCode, a.Header.Get("Cache-Control"))
				}
			}
		}
		if got := getJSON[wire.UploadList](s, "/api/v2/uploads?type=VID"); len(got.Data) != 0 {
			t.Errorf("videos = %+v, want none", got.Data)
		}
		s.sendRequest("GET", "/api/v2/uploads?type=film").checkStatus(t, "an unknown type", 400, "INVALID_REQUEST")
	})
}

// TestPagesReadFilesOfAnotherOrigin checks that only the app's own pages may
// read files, and only if files have another origin.
func TestPagesReadFilesOfAnotherOrigin(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		u := m.upload("", picture(4, 4))
		appURL := m.parts.Accounts.Settings.AppURL
		for _, x := range []struct{ media, want string }{
			{"https://media.example", appURL}, {"https://media.example:8443/files", appURL}, {appURL, ""}, {appURL + ":443/files", ""},
		} {
			s := m.with(func(p *api.Parts) { p.Links.BaseURL = x.media }, nil)
			for _, address := range []string{u.URL, u.URL + "x"} {
				for _, origin := range []string{"", appURL, "https://evil.example"} {
					a := s.fetch("GET", address, "Origin", origin)
					if got := a.Header.Get("Access-Control-Allow-Origin"); got != x.want || a.Header.Get("Access-Control-Allow-Credentials") != "" {
						t.Errorf("files at %s for %q: %d with %q, want %q", x.media, origin, a.StatusCode, got, x.want)
					}
				}
			}
			if got := s.sendRequest("GET", "/api/v2/me", "Origin", appURL).Header.Get("Access-Control-Allow-Origin"); got != "" {
				t.Errorf("the API allows %q", got)
			}
		}
		s := m.with(func(p *api.Parts) {
			p.Links.BaseURL = "https://media.example"
			p.Origins = []string{"https://plugin.example"}
		}, nil)
		for origin, want := range map[string]string{"https://plugin.example": "https://plugin.example", appURL: appURL} {
			if a := s.fetch("GET", u.URL, "Origin", origin); a.Header.Get("Access-Control-Allow-Origin") != want || a.Header.Get("Vary") != "Origin" {
				t.Errorf("for %s: %v", origin, a.Header)
			}
		}
	})
}
