package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"atelier/internal/testkit/browser"
)

// assistant is a client of the Model Context Protocol that its person signs in
// with a browser.
type assistant struct {
	t        *testing.T
	browser  *browser.Browser
	verdict  string // the button that the person clicks
	answered chan url.Values
	redirect string
	text     string // of the page on which the person decides
}

func newAssistant(t *testing.T, b *browser.Browser, verdict string) *assistant {
	a := &assistant{t: t, browser: b, verdict: verdict, answered: make(chan url.Values, 1)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/callback" {
			a.answered <- r.URL.Query()
		}
		fmt.Fprintln(w, "You can close this page.")
	}))
	t.Cleanup(server.Close)
	a.redirect = server.URL + "/callback"
	return a
}

// connect connects with the official client: it finds the authorization server,
// registers itself, and has the browser opened.
func (a *assistant) connect(service string) (*mcp.ClientSession, error) {
	handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName:              "Some Assistant",
			RedirectURIs:            []string{a.redirect},
			TokenEndpointAuthMethod: "none",
			GrantTypes:              []string{"authorization_code", "refresh_token"},
		}},
		AuthorizationCodeFetcher: a.fetchCode,
	})
	if err != nil {
		return nil, err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "assistant", Version: "1"}, nil)
	return client.Connect(a.t.Context(), &mcp.StreamableClientTransport{Endpoint: service + "/mcp", OAuthHandler: handler}, nil)
}

// fetchCode is what the person does in the browser.
func (a *assistant) fetchCode(_ context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	a.browser.Goto(args.URL + "&intent=signup")
	if strings.Contains(a.browser.Text(), "Sign up") {
		enter(a.browser, "anna@example.com")
	}
	a.text = a.browser.Text()
	if folder := os.Getenv("ATELIER_TEST_PICTURES"); folder != "" {
		_ = os.WriteFile(folder+"/app.png", a.browser.Screenshot(), 0o600)
	}
	a.browser.Click("[value=" + a.verdict + "]")
	answer := <-a.answered
	if answer.Get("error") != "" {
		return nil, fmt.Errorf("the service answers %s", answer.Get("error"))
	}
	return &auth.AuthorizationResult{Code: answer.Get("code"), State: answer.Get("state"), Iss: answer.Get("iss")}, nil
}

// TestAssistantInBrowser signs an assistant in with a real browser, has it run a
// tool, and signs it out on the page of devices.
func TestAssistantInBrowser(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		n := s.serve()
		b := browser.Open(t)
		a := newAssistant(t, b, "approve")
		session, err := a.connect(n.url)
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		for _, want := range []string{"Allow Some Assistant to act for you?", strings.TrimPrefix(strings.TrimSuffix(a.redirect, "/callback"), "http://"), "anna@example.com"} {
			if !strings.Contains(a.text, want) {
				t.Errorf("the page does not say %q: %s", want, a.text)
			}
		}
		s.do("admin", "grant", "--email", "anna@example.com", "--tokens", "10")
		call := func() (*mcp.CallToolResult, error) {
			return session.CallTool(t.Context(), &mcp.CallToolParams{Name: "gradient", Arguments: map[string]any{"size": "512x512"}})
		}
		result, err := call()
		if err != nil || result.IsError || len(result.Content) != 2 {
			t.Fatalf("gradient = %+v, %v", result, err)
		}
		if picture, ok := result.Content[1].(*mcp.ImageContent); !ok || len(picture.Data) == 0 {
			t.Errorf("content = %T", result.Content[1])
		}

		b.Goto(n.url + "/devices")
		if text := b.Text(); !strings.Contains(text, "Some Assistant") {
			t.Fatalf("devices = %s", text)
		}
		b.Click("[aria-label='Sign out Some Assistant']")
		a.verdict = "refuse" // the client asks again
		if _, err := call(); err == nil || !strings.Contains(err.Error(), "access_denied") {
			t.Errorf("a call of the assistant after it was signed out: %v", err)
		}

		if _, err := newAssistant(t, b, "refuse").connect(n.url); err == nil || !strings.Contains(err.Error(), "access_denied") {
			t.Errorf("a refused assistant: %v", err)
		}
		b.Goto(n.url + "/devices")
		if text := b.Text(); strings.Contains(text, "Some Assistant") {
			t.Errorf("devices = %s", text)
		}
		if errs := b.Errors(); len(errs) > 0 {
			t.Errorf("the browser reports %v", errs)
		}

		// Nobody is sent to an address that the app has not registered.
		b.Goto(n.url + "/oauth/authorize?response_type=code&client_id=nothing&redirect_uri=https%3A%2F%2Fexample.com%2F&intent=signup")
		if text := b.Text(); !strings.Contains(text, "This app is not registered here") || !strings.HasPrefix(b.URL(), n.url) {
			t.Errorf("an unknown app: %s at %s", text, b.URL())
		}
	})
}
