package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxAnswer is the maximum size of a response of the moderator, in bytes.
const maxAnswer = 1 << 20

// Options are the endpoint and the credentials of a moderator.
type Options struct {
	// URL is the URL of the endpoint, such as
	// https://api.example.com/v1/moderations.
	URL string
	// Key is sent as a bearer token. If it is empty, no token is sent.
	Key string
	// Model is sent in the request. If it is empty, the endpoint uses its
	// default model.
	Model string
	// Timeout is the maximum duration of a request, including its response. The
	// default is 10 seconds.
	Timeout time.Duration
}

// Moderator sends texts to an HTTP endpoint that has the format of OpenAI's
// moderation API. It is safe for concurrent use.
type Moderator struct {
	options Options
	client  *http.Client
}

// NewModerator validates the options and returns a moderator. It does not
// connect to the endpoint.
func NewModerator(o Options) (*Moderator, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil:
		return nil, errors.New("moderator: the address must be an http:// or https:// URL without credentials") // the URL is not shown, because it may contain a password
	case strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("moderator: the key has characters that are invalid in a header")
	case o.Timeout < 0:
		return nil, fmt.Errorf("moderator: invalid timeout %v", o.Timeout)
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	return &Moderator{options: o, client: &http.Client{
		Transport: &http.Transport{
			Proxy:             http.ProxyFromEnvironment,
			ForceAttemptHTTP2: true,
			MaxIdleConns:      16,
			// All connections go to one host.
			MaxIdleConnsPerHost: 16,
			IdleConnTimeout:     30 * time.Second,
		},
		Timeout: o.Timeout,
		// Redirects are not followed, because texts must be sent only to the
		// configured endpoint.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// askServer sends the texts to the moderation server. It returns the path, in
// the run's inputs, of the first text that the server flags. Blank texts are
// not sent, because some endpoints reject them.
func (m *Moderator) askServer(ctx context.Context, texts []Text) (path string, flagged bool, err error) {
	var request struct {
		Input []string `json:"input"`
		Model string   `json:"model,omitempty"`
	}
	var paths []string
	for _, t := range texts {
		if !t.isBlank() {
			request.Input = append(request.Input, t.Value)
			paths = append(paths, t.Path)
		}
	}
	if len(paths) == 0 {
		return "", false, nil
	}
	request.Model = m.options.Model
	body, err := json.Marshal(request)
	if err != nil {
		return "", false, err
	}
	flags, err := m.postRequest(ctx, body)
	if err != nil {
		return "", false, err
	}
	if len(flags) != len(paths) {
		return "", false, fmt.Errorf("the moderator returned %d results for %d texts", len(flags), len(paths))
	}
	for i, f := range flags {
		if f {
			return paths[i], true, nil
		}
	}
	return "", false, nil
}

func (m *Moderator) postRequest(ctx context.Context, body []byte) (flags []bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.options.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if m.options.Key != "" {
		r.Header.Set("Authorization", "Bearer "+m.options.Key)
	}
	response, err := m.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the moderator's response: %w", err)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the moderator responded with status %d", response.StatusCode)
	case len(answer) > maxAnswer:
		return nil, errors.New("the moderator's response is too long")
	}
	var verdict struct {
		Results []struct {
			Flagged *bool `json:"flagged"`
		} `json:"results"`
	}
	if err := json.Unmarshal(answer, &verdict); err != nil {
		return nil, fmt.Errorf("read the moderator's response: %w", err)
	}
	for _, result := range verdict.Results {
		if result.Flagged == nil {
			return nil, errors.New(`a result in the moderator's response has no field "flagged"`)
		}
		flags = append(flags, *result.Flagged)
	}
	return flags, nil
}
