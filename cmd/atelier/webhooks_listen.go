package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"atelier/client"
)

type webhooksListenCmd struct {
	jsonFlag
	serviceFlags
	Address string   `help:"Address to listen on." default:"127.0.0.1:0" placeholder:"HOST:PORT"`
	Forward string   `help:"Pass verified webhooks on to this address, or to this port of localhost." placeholder:"URL"`
	Secret  []string `name:"webhook-secret" help:"Secret that signs the webhooks (default: the account's)." placeholder:"SECRET"`
	Count   int      `help:"End after this many webhooks." placeholder:"N"`
	Plain   bool     `help:"Listen without TLS, for a proxy that has a certificate."`
}

// Run receives webhooks until Ctrl-C: it verifies and prints each, and passes it
// on with its headers, so that a program on this machine can verify it too.
func (c webhooksListenCmd) Run(p *program) error {
	forward, err := parseForward(c.Forward)
	if err != nil {
		return err
	}
	secrets := c.Secret
	if len(secrets) == 0 {
		service, err := c.connect(p)
		if err != nil {
			return err
		}
		found, err := service.Webhooks.GetSecret(p.ctx)
		if err != nil {
			return err
		}
		secrets = []string{found.Secret}
	}
	verifier, err := client.NewVerifier(secrets...)
	if err != nil {
		return usageError{err}
	}
	listener, err := (&net.ListenConfig{}).Listen(p.ctx, "tcp", c.Address)
	if err != nil {
		return usageError{err}
	}
	ctx, stop := context.WithCancel(p.ctx)
	defer stop()
	receiver := &webhookReceiver{
		program:  p,
		verifier: verifier,
		forward:  forward,
		asJSON:   c.JSON,
		left:     c.Count,
		stop:     stop,
	}
	if listener, err = c.announce(p, listener); err != nil {
		return err
	}

	server := &http.Server{Handler: receiver, ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { err = server.Serve(listener) })
	<-ctx.Done()
	ended, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), 5*time.Second)
	defer cancel()
	closed := server.Shutdown(ended)
	serving.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, closed)
}

// announce prints the address of the receiver, and puts TLS around it.
func (c webhooksListenCmd) announce(p *program, listener net.Listener) (net.Listener, error) {
	if c.Plain {
		fmt.Fprintf(p.stderr, "Listening at http://%s/\n", listener.Addr())
		return listener, nil
	}
	path, pair, err := p.webhookCertificate()
	if err != nil {
		listener.Close()
		return nil, err
	}
	address := fmt.Sprintf("https://%s/", listener.Addr())
	fmt.Fprintf(p.stderr, "Listening at %s\n"+
		"A service on this machine reaches it if it was started with\n"+
		"  SSL_CERT_FILE=%s ATELIER_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8\n"+
		"Then: atelier run TOOL --webhook %s\n", address, path, address)
	return tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), nil
}

// parseForward returns the address that webhooks are passed on to; "" for none.
func parseForward(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if port, err := net.LookupPort("tcp", text); err == nil && port > 0 {
		return fmt.Sprintf("http://localhost:%d/", port), nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usageError{fmt.Errorf("--forward: %q is neither a port nor an address such as http://localhost:3000/hook", text)}
	}
	return text, nil
}

// webhookReceiver is the local receiver.
type webhookReceiver struct {
	program  *program
	verifier *client.Verifier
	forward  string
	asJSON   bool
	stop     func()

	mu   sync.Mutex
	left int // webhooks to receive; 0 means any number
}

// receivedWebhook is a webhook as it is printed in JSON.
type receivedWebhook struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Received  time.Time       `json:"received"`
	Verified  bool            `json:"verified"`
	Problem   string          `json:"problem,omitempty"`
	Forwarded int             `json:"forwarded,omitempty"` // status of the program behind --forward
	Event     json.RawMessage `json:"event"`
}

// ServeHTTP receives one webhook. The service gets the answer of the program
// behind --forward, so that its repetitions can be tried out too.
func (h *webhookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const maxBody = 8 << 20
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	got := receivedWebhook{ID: r.Header.Get("Webhook-Id"), Received: time.Now().UTC(), Event: body}
	if !json.Valid(body) {
		got.Event, _ = json.Marshal(string(body)) // a text can always be encoded
	}
	status := http.StatusNoContent
	if err := h.verifier.Verify(r.Header, body); err != nil {
		got.Problem = err.Error()
		status = http.StatusUnauthorized
	} else {
		got.Verified = true
		if event, err := client.ParseWebhook(r.Header, body); err == nil {
			got.Type = event.Type
		}
		if h.forward != "" {
			status = h.pass(r, body, &got)
		}
	}
	w.WriteHeader(status)
	h.report(got)
}

// pass sends a webhook on, and returns the status for the service.
func (h *webhookReceiver) pass(r *http.Request, body []byte, got *receivedWebhook) int {
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, h.forward, bytes.NewReader(body))
	if err != nil {
		got.Problem = err.Error()
		return http.StatusBadGateway
	}
	for _, name := range []string{"Content-Type", "User-Agent", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
		req.Header[name] = r.Header[name]
	}
	res, err := (&http.Client{Timeout: 15 * time.Second}).Do(req)
	if err != nil {
		got.Problem = err.Error()
		return http.StatusBadGateway
	}
	res.Body.Close()
	got.Forwarded = res.StatusCode
	return res.StatusCode
}

// report prints a webhook, and ends the command after the last one.
func (h *webhookReceiver) report(got receivedWebhook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	palette := h.program.palette(h.program.stdout)
	line := fmt.Sprintf("%s  %s  %s", got.Received.Local().Format(time.TimeOnly), cleanText(got.Type), cleanText(got.ID))
	if got.Verified {
		line += "  " + palette.Green("verified")
	} else {
		line += "  " + palette.Red("NOT VERIFIED")
	}
	if got.Forwarded > 0 {
		line += fmt.Sprintf("  forwarded: status %d", got.Forwarded)
	}
	if got.Problem != "" {
		line += "  " + cleanText(got.Problem)
	}
	if !h.asJSON {
		line += "\n" + indentJSON(got.Event)
	}
	if err := h.program.printResult(h.asJSON, got, line); err != nil {
		h.stop()
	}
	if h.left > 0 {
		h.left--
		if h.left == 0 {
			h.stop()
		}
	}
}

// indentJSON formats JSON for people. Encoded JSON has no control characters.
func indentJSON(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "  ", "  ") != nil {
		return ""
	}
	return "  " + b.String()
}
