package client_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atelier/client"
)

// TestTransport sends requests of others with the credential of a client.
func TestTransport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &signInServer{lifetime: time.Hour}
		store := client.NewMemoryStore(client.Tokens{IDToken: "revoked", RefreshToken: "refresh0", ExpiresAt: time.Now().Add(time.Hour).Unix()})
		c := connect(t, &memoryTransport{handler: s}, withStore(store))
		plain := &http.Client{Transport: c.Transport()}
		for range 2 {
			res, err := plain.Post(c.URL()+"/mcp", "application/json", strings.NewReader(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			res.Body.Close()
			if err != nil || res.StatusCode != 200 || string(body) != "{}" || s.refreshes != 1 {
				t.Errorf("%d %s, %v, %d refreshes", res.StatusCode, body, err, s.refreshes)
			}
		}
		for _, elsewhere := range []string{"https://elsewhere.example/mcp", strings.Replace(c.URL(), "://", "://evil.", 1) + "/mcp"} {
			if _, err := plain.Post(elsewhere, "application/json", strings.NewReader(`{}`)); !errors.Is(err, client.ErrOtherService) {
				t.Errorf("%s: %v", elsewhere, err)
			}
		}
		signedOut := &http.Client{Transport: connect(t, &memoryTransport{handler: s}, withStore(&client.MemoryStore{})).Transport()}
		if _, err := signedOut.Get(c.URL() + "/mcp"); !errors.Is(err, client.ErrSignedOut) {
			t.Errorf("without tokens: %v", err)
		}
	})
}
