package api_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"atelier/internal/account/devicelogin"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// as asks with the ID token of a device.
func (s *service) as(in devicelogin.Login, method, path, body string) (status int, header http.Header, text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+in.Tokens.ID)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
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
	return res.StatusCode, res.Header, string(b)
}

func TestExportOfMe(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := startService(t, db, limits)
		in := s.site.Device(s.site.Person("bert@example.com"), "figma")
		for range 5 {
			status, header, body := s.as(in, "GET", "/api/v2/me/export", "")
			if status != 200 || header.Get("Content-Type") != "application/zip" || !strings.HasPrefix(header.Get("Content-Disposition"), "attachment; filename=atelier-") {
				t.Fatalf("%d %v", status, header)
			}
			r, err := zip.NewReader(bytes.NewReader([]byte(body)), int64(len(body)))
			if err != nil || len(r.File) != 16 {
				t.Fatalf("%v: %+v", err, r)
			}
			if status, _, body := s.as(in, "HEAD", "/api/v2/me/export", ""); status != 200 || body != "" { // which does not count
				t.Errorf("HEAD = %d %q", status, body)
			}
		}
		if status, header, body := s.as(in, "GET", "/api/v2/me/export", ""); status != 429 || !strings.Contains(body, "RATE_LIMITED") || header.Get("Retry-After") == "" {
			t.Errorf("%d %v %s", status, header, body)
		}
	})
}

func TestDeletionOfMe(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		s := startService(t, db, limits)
		in := s.site.Device(s.site.Person("bert@example.com"), "figma")
		_, token := s.site.Token("bert@example.com", "")
		for _, body := range []string{`{"email":"anna@example.com"}`, `{"email":""}`, `{}`} {
			if status, _, text := s.as(in, "DELETE", "/api/v2/me", body); status != 400 || !strings.Contains(text, "INVALID_REQUEST") || !strings.Contains(text, `"email"`) {
				t.Errorf("%s = %d %s", body, status, text)
			}
		}
		if status, _, text := s.as(in, "DELETE", "/api/v2/me", `{"email":"BERT@example.com"}`); status != 204 || text != "" {
			t.Fatalf("%d %s", status, text)
		}
		for what, in := range map[string]devicelogin.Login{"the device": in, "the token": {Tokens: devicelogin.Tokens{ID: token}}} {
			for _, call := range []string{"GET /api/v2/me", "DELETE /api/v2/me", "GET /api/v2/me/export", "GET /api/v2/tools"} {
				method, path, _ := strings.Cut(call, " ")
				body := ""
				if method == "DELETE" {
					body = `{"email":"bert@example.com"}`
				}
				if status, _, text := s.as(in, method, path, body); status != 401 {
					t.Errorf("%s: %s = %d %s", what, call, status, text)
				}
			}
		}
	})
}
