package scim_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"atelier/internal/people/principal"
)

// TestEndedWhileTheBodyArrives disconnects an identity provider after its
// request was authenticated and before the last byte of the body.
func TestEndedWhileTheBodyArrives(t *testing.T) {
	each(t, func(w *fixture) {
		for _, x := range []struct{ method, path, body string }{
			{"POST", "/Users", `{"userName":"late@fox.example"}`},
			{"POST", "/Users/.search", `{}`},
			{"POST", "/Groups/.search", `{}`},
			{"POST", "/.search", `{}`},
		} {
			_, token, err := w.site.Companies.SCIMConnections.ConnectProvider(w.Context(), principal.Operator(), w.fox)
			w.ok(err)
			in, out := io.Pipe()
			r, err := http.NewRequestWithContext(w.Context(), x.method, w.url+"/scim/v2"+x.path, in)
			w.ok(err)
			r.ContentLength = int64(len(x.body))
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("Content-Type", "application/scim+json")
			r.Header.Set("Expect", "100-continue") // the body is asked for once the request was let in
			go func() {
				_, err := io.WriteString(out, x.body[:len(x.body)-1])
				if err == nil {
					err = w.site.Companies.SCIMConnections.DisconnectProvider(w.Context(), principal.Operator(), w.fox)
				}
				if err == nil {
					_, err = io.WriteString(out, x.body[len(x.body)-1:])
				}
				out.CloseWithError(err)
			}()
			client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
			res, err := client.Do(r)
			w.ok(err)
			text, err := io.ReadAll(res.Body)
			w.ok(err)
			res.Body.Close()
			if res.StatusCode != http.StatusUnauthorized || strings.Contains(string(text), "Resources") {
				w.Errorf("%s %s = %d %s, want 401", x.method, x.path, res.StatusCode, text)
			}
		}
		if len(w.roles(w.fox)) != 0 {
			w.Errorf("members = %v", w.roles(w.fox))
		}
	})
}
