package oidc_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"atelier/internal/people/oidc"
	"atelier/internal/people/oidc/oidctest"
	"atelier/internal/testkit/browser"
)

// TestBrowserSignsIn goes through the provider's pages as people do.
func TestBrowserSignsIn(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "back") }))
	t.Cleanup(service.Close)
	s := oidctest.Start(t, service.URL+"/callback")
	ours := settings(s)
	ours.RedirectURL = service.URL + "/callback"
	p := oidc.New(ours)
	address, pending, err := p.BeginSignIn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := browser.Open(t)
	b.Goto(address)
	b.Fill("[name=login]", "anna@studio.example")
	b.Fill("[name=password]", "any")
	b.Click("button")
	b.Click("button")
	back, err := url.Parse(b.URL())
	if err != nil || b.Text() != "back" || !strings.HasPrefix(b.URL(), service.URL) {
		t.Fatalf("the browser is at %s: %s, %v", b.URL(), b.Text(), err)
	}
	who, err := p.FinishSignIn(t.Context(), pending, back.Query().Get("state"), back.Query().Get("code"))
	if err != nil || who.Email != "anna@studio.example" {
		t.Errorf("finish = %+v, %v", who, err)
	}
}
