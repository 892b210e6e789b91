package signin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"atelier/internal/person"
	"atelier/internal/signin"
	"atelier/internal/sqldb"
	"atelier/internal/sqldb/dbtest"
)

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func TestSetup(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		h := signin.New(db, "https://atelier.example")
		var token string
		err := db.Write(t.Context(), func(tx *sqldb.Tx) (err error) { token, err = person.OfferSetup(t.Context(), tx); return err })
		if err != nil {
			t.Fatal(err)
		}
		page := get(h, "/setup?token="+token)
		if page.Code != 200 || !strings.Contains(page.Body.String(), "atelier admin person create") || !strings.Contains(page.Body.String(), "https://atelier.example/api/v2/tools") {
			t.Errorf("set-up page = %d %s", page.Code, page.Body)
		}
		if csp := page.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("policy = %s", csp)
		}
		for _, bad := range []string{"/setup", "/setup?token=", "/setup?token=x", "/setup?token=" + token + "x"} {
			if page := get(h, bad); page.Code != 404 || strings.Contains(page.Body.String(), "admin person") {
				t.Errorf("%s = %d %s", bad, page.Code, page.Body)
			}
		}
		err = db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := person.Create(t.Context(), tx, person.Draft{Email: "a@b.c", PasswordHash: "x"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if page := get(h, "/setup?token="+token); page.Code != 404 {
			t.Errorf("after the first person = %d, want 404", page.Code)
		}
		if css := get(h, "/style.css"); css.Code != 200 || css.Header().Get("Content-Type") != "text/css; charset=utf-8" {
			t.Errorf("style = %d %v", css.Code, css.Header())
		}
		if post := httptest.NewRecorder(); true {
			h.ServeHTTP(post, httptest.NewRequest("POST", "/setup", nil))
			if post.Code != 405 {
				t.Errorf("POST /setup = %d, want 405", post.Code)
			}
		}
	})
}
