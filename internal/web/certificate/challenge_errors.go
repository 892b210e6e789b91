package certificate

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
)

const (
	maxAnswerBytes = 1 << 20 // maximum size of a response of the authority
	maxReason      = 2000    // maximum length in bytes of the reasons collected for a domain
)

// challengeTransport sends requests to the certificate authority and records
// why challenges failed: autocert discards the reason when it attempts the
// next kind of challenge.
type challengeTransport struct {
	http.RoundTripper

	mu      sync.Mutex
	reasons map[string]string // by domain
}

// authorization is the authority's record of the challenges for a domain (RFC
// 8555 section 7.1.4).
type authorization struct {
	Identifier struct{ Value string }
	Challenges []struct {
		Type  string
		Error struct{ Detail string }
	}
}

// RoundTrip sends a request to the authority and records the errors of failed
// challenges that the response contains.
func (c *challengeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "application/json" {
		return res, nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes))
	_ = res.Body.Close() // the body has been read
	if err != nil {
		return nil, err
	}
	res.Body = io.NopCloser(bytes.NewReader(body))

	var a authorization
	if json.Unmarshal(body, &a) != nil || a.Identifier.Value == "" {
		return res, nil
	}
	for _, challenge := range a.Challenges {
		if challenge.Error.Detail != "" {
			c.addReason(a.Identifier.Value, challenge.Type+": "+challenge.Error.Detail)
		}
	}
	return res, nil
}

func (c *challengeTransport) addReason(domain, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reasons == nil {
		c.reasons = map[string]string{}
	}
	switch before := c.reasons[domain]; {
	case before == "":
		c.reasons[domain] = reason
	case !strings.Contains(before, reason) && len(before) < maxReason:
		c.reasons[domain] = before + "; " + reason
	}
}

// takeReason returns and clears the recorded reasons why the challenges of a
// domain failed.
func (c *challengeTransport) takeReason(domain string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	reason := c.reasons[domain]
	delete(c.reasons, domain)
	return reason
}
