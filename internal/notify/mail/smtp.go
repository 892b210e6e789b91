package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"regexp"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"atelier/internal/base/ids"
)

// Settings configures the connection to a mail server.
type Settings struct {
	Address string // host:port
	// From is the sender's e-mail address, with or without a display name.
	From string
	// Username and Password are for authentication. If they are empty, the
	// client does not authenticate.
	Username, Password string
	// TLS is "starttls" (the server must support STARTTLS), "tls" (TLS from the
	// first byte) or "none".
	TLS string
	// Timeout is the time limit of a connection. The default is 30 s.
	Timeout time.Duration
	// Roots are the trusted root certificates. The default is the system's root
	// certificates.
	Roots *x509.CertPool
}

// SMTP returns a sender that delivers messages to a mail server. It opens a
// connection for each message.
func SMTP(s Settings) (Sender, error) {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil || host == "" || port == "" {
		return nil, errors.New("mail settings: the server address must be HOST:PORT")
	}
	from, err := mail.ParseAddress(s.From)
	if err != nil || !isBareAddress(from.Address) || !isPrintable(from.Name, "") {
		return nil, errors.New("mail settings: the sender is not an e-mail address")
	}
	options := []gomail.Option{
		gomail.WithTimeout(cmp.Or(s.Timeout, 30*time.Second)),
		gomail.WithoutNoop(),
	}
	secure := &tls.Config{ServerName: host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
	server := &server{host: host, from: from}
	server.domain = from.Address[strings.LastIndexByte(from.Address, '@')+1:]
	dialer := &net.Dialer{}
	server.dial = func(ctx context.Context) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", s.Address) }
	switch s.TLS {
	case "starttls":
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithTLSConfig(secure))
	case "tls":
		options = append(options, gomail.WithSSL())
		wrap := &tls.Dialer{NetDialer: dialer, Config: secure}
		server.dial = func(ctx context.Context) (net.Conn, error) { return wrap.DialContext(ctx, "tcp", s.Address) }
	case "none":
		if s.Username != "" && !isLocalHost(host) {
			return nil, errors.New("mail settings: a password requires TLS, unless the mail server is on this machine")
		}
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		return nil, errors.New("mail settings: the encryption must be starttls, tls or none")
	}
	if s.Username != "" {
		options = append(options, gomail.WithUsername(s.Username), gomail.WithPassword(s.Password),
			// Microsoft's servers support only LOGIN. Neither PLAIN nor LOGIN
			// sends a password without TLS, except to this machine.
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	server.options = options
	return server, nil
}

// isLocalHost reports whether the host is this machine. It does not look up the
// name in DNS.
func isLocalHost(host string) bool {
	return host == "localhost" || host == "127.0.0.1" || host == "::1"
}

type server struct {
	host, domain string
	from         *mail.Address
	dial         func(context.Context) (net.Conn, error)
	options      []gomail.Option
}

// Send delivers the message to the mail server.
func (s *server) Send(ctx context.Context, m Message) error {
	if err := m.CheckMessage(); err != nil {
		return err
	}
	// After connecting, the library ignores the context. It also leaves the
	// connection open if the server rejects the client. Therefore the
	// connection is closed when Send returns.
	ctx, end := context.WithCancel(ctx)
	defer end()
	dial := func(dialling context.Context, _, _ string) (net.Conn, error) {
		conn, err := s.dial(dialling)
		if err == nil {
			context.AfterFunc(ctx, func() { conn.Close() })
		}
		return conn, err
	}
	client, err := gomail.NewClient(s.host, append([]gomail.Option{gomail.WithDialContextFunc(dial)}, s.options...)...)
	if err != nil {
		return fmt.Errorf("send mail: %w", err)
	}
	msg := s.composeMessage(m)
	err = client.DialAndSendWithContext(ctx, msg)
	switch {
	case msg.IsDelivered():
		// The server has accepted the message, so it must not be sent again
		// because of a later error.
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("send mail: %w", context.Cause(ctx))
	default:
		return classifyError(err)
	}
}

// composeMessage converts the message to the representation of the mail
// library.
func (s *server) composeMessage(m Message) *gomail.Msg {
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(&mail.Address{Address: m.To})
	msg.Subject(m.Subject)
	msg.SetMessageIDWithValue(ids.New() + "@" + s.domain)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // prevents automatic replies (RFC 3834)
	msg.SetBodyString(gomail.TypeTextPlain, m.Text)
	return msg
}

// links matches URLs. They are removed from error messages, because a server
// may quote the message in its response, and anyone who has a one-time link can
// use it.
var links = regexp.MustCompile(`(?i)[a-z]+://\S+`)

// classifyError returns a permanent error if the server rejected the message or
// its recipient. If the server rejected the sender, the error is not permanent,
// because the operator can correct the settings.
func classifyError(err error) error {
	said := links.ReplaceAllString(err.Error(), "[link]")
	refused, ok := errors.AsType[*gomail.SendError](err)
	if ok && refused.ErrorCode() >= 500 && refused.Reason != gomail.ErrSMTPMailFrom {
		return permanent{fmt.Errorf("send mail: refused: %s", said)}
	}
	return fmt.Errorf("send mail: %s", said)
}
