// Package mailtest runs an SMTP server for tests.
package mailtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Options configures the server.
type Options struct {
	// TLS is "starttls", "tls" or "none". The default is "none".
	TLS string
	// Username and Password are the credentials that clients must present. If
	// they are empty, no authentication is required.
	Username, Password string
	// Sender, Refuse and Reject check the sender's address, the recipient's
	// address and the whole message, respectively. If a function returns an
	// error, the server responds with it. If a function is nil, everything is
	// accepted.
	Sender, Refuse func(address string) error
	Reject         func(raw string) error
	// Hangup makes the server close each connection after it has accepted a
	// message.
	Hangup bool
}

// Server is an SMTP server on the loopback interface that runs until the test
// ends.
type Server struct {
	Address string
	Roots   *x509.CertPool // root certificates for verifying the server's certificate
	arrived chan Mail
}

// Mail is a message that the server has received.
type Mail struct {
	From, To string // addresses from the SMTP envelope
	Header   mail.Header
	Subject  string // decoded
	Text     string // decoded, with lines that end with \n
	Raw      string
	TLS      bool   // the message arrived over TLS
	Username string // user name with which the client authenticated; empty if it did not
}

// Error returns an SMTP error response with a code such as 550.
func Error(code int, text string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 0, 0}, Message: text}
}

// Start starts a server, which stops when the test ends.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("mail server for tests: %v", err)
	}
	s := &Server{Address: l.Addr().String(), arrived: make(chan Mail, 100)}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &session{server: s, options: o, conn: c}, nil
	}))
	server.Domain = "localhost"
	server.EnableSMTPUTF8 = true
	server.AllowInsecureAuth = o.TLS != "starttls"
	server.MaxLineLength = 1000 // RFC 5321 section 4.5.3.1.6
	server.ErrorLog = log.New(io.Discard, "", 0)
	if o.TLS == "starttls" || o.TLS == "tls" {
		certificate := s.certificate(t)
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
	}
	if o.TLS == "tls" {
		l = tls.NewListener(l, server.TLSConfig)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		server.Serve(l)
	}()
	t.Cleanup(func() {
		l.Close() // the server may not have registered the listener yet
		server.Close()
		<-ended
	})
	return s
}

// Next returns the oldest message that Next has not returned yet. It waits up
// to 20 seconds for a message.
func (s *Server) Next(t testing.TB) Mail {
	t.Helper()
	select {
	case m := <-s.arrived:
		return m
	case <-time.After(20 * time.Second):
		t.Fatal("no mail arrived")
		return Mail{}
	}
}

// None fails the test if the server has received a message that Next has not
// returned.
func (s *Server) None(t testing.TB) {
	t.Helper()
	select {
	case m := <-s.arrived:
		t.Errorf("mail for %s arrived: %s", m.To, m.Subject)
	default:
	}
}

// certificate returns a self-signed certificate for 127.0.0.1 and sets s.Roots
// so that clients can verify it.
func (s *Server) certificate(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s.Roots = x509.NewCertPool()
	s.Roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// session is an SMTP session with one client.
type session struct {
	server         *Server
	options        Options
	conn           *smtp.Conn
	username       string
	sender, target string
}

func (s *session) AuthMechanisms() []string {
	if s.options.Username == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		if username != s.options.Username || password != s.options.Password {
			return smtp.ErrAuthFailed
		}
		s.username = username
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.username != s.options.Username {
		return smtp.ErrAuthRequired
	}
	s.sender = from
	if s.options.Sender != nil {
		return s.options.Sender(from)
	}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.target = to
	if s.options.Refuse != nil {
		return s.options.Refuse(to)
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.options.Reject != nil {
		if err := s.options.Reject(string(raw)); err != nil {
			return err
		}
	}
	m := Mail{From: s.sender, To: s.target, Raw: string(raw), Username: s.username}
	_, m.TLS = s.conn.TLSConnectionState()
	parsed, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	m.Header = parsed.Header
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject")); err != nil {
		return err
	}
	text, err := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	if err != nil {
		return err
	}
	m.Text = strings.ReplaceAll(string(text), "\r\n", "\n")
	s.server.arrived <- m
	return nil
}

func (s *session) Reset() {
	if s.options.Hangup && s.target != "" {
		s.conn.Conn().Close()
	}
}

func (s *session) Logout() error { return nil }
