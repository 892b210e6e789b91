package mail_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"atelier/internal/notify/mail"
	"atelier/internal/notify/mail/mailtest"
	"atelier/internal/testkit/watch"
)

const (
	username = "atelier"
	password = "correct horse"
)

var hello = mail.Message{To: "anna@studio.example", Subject: "Hello", Text: "Hello Anna,\n\nhttps://atelier.example/link/abc\n"}

func settings(s *mailtest.Server, tls string) mail.Settings {
	return mail.Settings{
		Address: s.Address, From: "Atelier Zürich <noreply@atelier.example>", TLS: tls, Roots: s.Roots, Timeout: 10 * time.Second,
	}
}

func open(t *testing.T, s mail.Settings) mail.Sender {
	t.Helper()
	sender, err := mail.SMTP(s)
	if err != nil {
		t.Fatal(err)
	}
	return sender
}

func TestMailArrives(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Ein langer Satz über Füchse 🦊 ohne Ende. ", 60)
	tests := []struct{ name, subject, text string }{
		{"plain", "Hello", "Hello.\n"},
		{"umlauts and emoji", "Grüße aus Zürich 🦊", "Schöne Grüße 🦊\n"},
		{"a long subject", strings.Repeat("Füchse 🦊 ", 22), "x"},
		{"a long subject without spaces", strings.Repeat("x", 200), "x"},
		{"long lines", "Long", long + "\n" + strings.Repeat("x", 5000) + "\nend"},
		{"dots and headers at line starts", "Dots", ".\n..\n.x\n\nSubject: no\nFrom nobody\n.\n"},
		{"spaces at line ends and equal signs", "Spaces", "a  \n\tb=c=3D \n\n\n"},
		{"encoded words stay text in the body", "=?x", "=?utf-8?q?a?="},
	}
	server := mailtest.Start(t, mailtest.Options{})
	sender := open(t, settings(server, "none"))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := sender.Send(t.Context(), mail.Message{To: "anna@studio.example", Subject: tt.subject, Text: tt.text}); err != nil {
				t.Fatal(err)
			}
			got := server.Next(t)
			if got.From != "noreply@atelier.example" || got.To != "anna@studio.example" {
				t.Errorf("from %q to %q", got.From, got.To)
			}
			if got.Subject != strings.TrimRight(tt.subject, " ") && got.Subject != tt.subject {
				t.Errorf("subject = %q, want %q", got.Subject, tt.subject)
			}
			if strings.TrimRight(got.Text, "\n") != strings.TrimRight(tt.text, "\n") {
				t.Errorf("text = %q, want %q", got.Text, tt.text)
			}
			for _, line := range strings.Split(got.Raw, "\r\n") {
				if len(line) > 998 || strings.ContainsAny(line, "\r\n") {
					t.Errorf("a line of %d bytes: %.80q", len(line), line)
				}
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	server := mailtest.Start(t, mailtest.Options{})
	sender := open(t, settings(server, "none"))
	ids := map[string]bool{}
	for range 2 {
		if err := sender.Send(t.Context(), hello); err != nil {
			t.Fatal(err)
		}
		h := server.Next(t).Header
		from, err := h.AddressList("From")
		if err != nil || len(from) != 1 || from[0].Name != "Atelier Zürich" || from[0].Address != "noreply@atelier.example" {
			t.Errorf("from = %v, %v", from, err)
		}
		to, err := h.AddressList("To")
		if err != nil || len(to) != 1 || to[0].Name != "" || to[0].Address != "anna@studio.example" {
			t.Errorf("to = %v, %v", to, err)
		}
		id := h.Get("Message-Id")
		if !strings.HasSuffix(id, "@atelier.example>") || ids[id] {
			t.Errorf("message id = %q, want a new one of atelier.example", id)
		}
		ids[id] = true
		if _, err := h.Date(); err != nil {
			t.Errorf("date: %v", err)
		}
		if got := h.Get("Auto-Submitted"); got != "auto-generated" {
			t.Errorf("auto-submitted = %q", got)
		}
		if got := h.Get("Content-Type"); got != "text/plain; charset=UTF-8" {
			t.Errorf("content type = %q", got)
		}
		if h.Get("User-Agent")+h.Get("X-Mailer") != "" {
			t.Error("the mail says which program wrote it")
		}
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	for _, tls := range []string{"starttls", "tls", "none"} {
		t.Run(tls, func(t *testing.T) {
			t.Parallel()
			server := mailtest.Start(t, mailtest.Options{TLS: tls, Username: username, Password: password})
			s := settings(server, tls)
			s.Username, s.Password = username, password
			if err := open(t, s).Send(t.Context(), hello); err != nil {
				t.Fatal(err)
			}
			if got := server.Next(t); got.Username != username || got.TLS != (tls != "none") {
				t.Errorf("mail came from %q, over TLS: %t", got.Username, got.TLS)
			}
			s.Password = "wrong"
			if err := open(t, s).Send(t.Context(), hello); err == nil || mail.IsPermanent(err) {
				t.Errorf("send with a wrong password = %v, want an error that can pass", err)
			}
			s.Username, s.Password = "", ""
			if err := open(t, s).Send(t.Context(), hello); err == nil || mail.IsPermanent(err) {
				t.Errorf("send without a password = %v, want an error that can pass", err)
			}
			server.None(t)
		})
	}
}

func TestTLSIsInsistedOn(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, server *mailtest.Server, s mail.Settings) {
		t.Helper()
		s.Username, s.Password = username, password
		if err := open(t, s).Send(t.Context(), hello); err == nil || mail.IsPermanent(err) || strings.Contains(err.Error(), password) {
			t.Errorf("send = %v, want an error that can pass", err)
		}
		server.None(t)
	}
	t.Run("a server without it", func(t *testing.T) {
		t.Parallel()
		server := mailtest.Start(t, mailtest.Options{Username: username, Password: password})
		refused(t, server, settings(server, "starttls"))
	})
	for _, tls := range []string{"starttls", "tls"} {
		t.Run("a server nobody vouches for, "+tls, func(t *testing.T) {
			t.Parallel()
			server := mailtest.Start(t, mailtest.Options{TLS: tls, Username: username, Password: password})
			s := settings(server, tls)
			s.Roots = nil
			refused(t, server, s)
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		options   mailtest.Options
		permanent bool
	}{
		{"nobody has this address", mailtest.Options{Refuse: func(string) error { return mailtest.Error(550, "no such person") }}, true},
		{"the person is over quota", mailtest.Options{Refuse: func(string) error { return mailtest.Error(452, "mailbox full") }}, false},
		{"spam", mailtest.Options{Reject: func(string) error { return mailtest.Error(554, "looks like spam") }}, true},
		{"come back later", mailtest.Options{Reject: func(string) error { return mailtest.Error(451, "greylisted") }}, false},
		{"our own address is refused", mailtest.Options{Sender: func(string) error { return mailtest.Error(553, "not yours") }}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := mailtest.Start(t, tt.options)
			err := open(t, settings(server, "none")).Send(t.Context(), hello)
			if err == nil || mail.IsPermanent(err) != tt.permanent {
				t.Errorf("send = %v, permanent = %t, want %t", err, mail.IsPermanent(err), tt.permanent)
			}
		})
	}
}

func TestErrorsHideLinks(t *testing.T) {
	t.Parallel()
	server := mailtest.Start(t, mailtest.Options{Reject: func(raw string) error {
		return mailtest.Error(554, "blocked: HTTPS://atelier.example/link/abc looks bad")
	}})
	err := open(t, settings(server, "none")).Send(t.Context(), hello)
	if err == nil || strings.Contains(err.Error(), "abc") || !strings.Contains(err.Error(), "blocked: [link] looks bad") {
		t.Errorf("send = %v, want the answer without the link", err)
	}
}

func TestTakenOverIsSent(t *testing.T) {
	t.Parallel()
	server := mailtest.Start(t, mailtest.Options{Hangup: true})
	if err := open(t, settings(server, "none")).Send(t.Context(), hello); err != nil {
		t.Errorf("send = %v, want nil: the server has the message", err)
	}
	server.Next(t)
}

func TestDeadServers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it takes connections and never speaks
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for _, address := range []string{gone.Addr().String(), l.Addr().String()} {
		s := mail.Settings{Address: address, From: "noreply@atelier.example", TLS: "starttls", Timeout: 50 * time.Millisecond}
		if err := open(t, s).Send(t.Context(), hello); err == nil || mail.IsPermanent(err) {
			t.Errorf("send to a dead server = %v, want an error that can pass", err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("stopping")
	time.AfterFunc(20*time.Millisecond, func() { cancel(why) })
	s := mail.Settings{Address: l.Addr().String(), From: "noreply@atelier.example", TLS: "starttls", Timeout: time.Hour}
	if err := open(t, s).Send(ctx, hello); !errors.Is(err, why) || mail.IsPermanent(err) {
		t.Errorf("send that was cancelled = %v, want %v", err, why)
	}
}

func TestBadMessagesAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		m    mail.Message
	}{
		{"no address", mail.Message{To: "", Subject: "s", Text: "t"}},
		{"a name and an address", mail.Message{To: "Anna <anna@studio.example>", Subject: "s", Text: "t"}},
		{"two addresses", mail.Message{To: "a@b.example, c@d.example", Subject: "s", Text: "t"}},
		{"a line break in the address", mail.Message{To: "anna@studio.example\r\nBcc: eve@evil.example", Subject: "s", Text: "t"}},
		{"a bare line feed in the address", mail.Message{To: "anna@studio.example\n", Subject: "s", Text: "t"}},
		{"a line separator in the address", mail.Message{To: "an\u2028na@studio.example", Subject: "s", Text: "t"}},
		{"a quoted address", mail.Message{To: `"a> b"@studio.example`, Subject: "s", Text: "t"}},
		{"a long address", mail.Message{To: strings.Repeat("a", 254) + "@b.example", Subject: "s", Text: "t"}},
		{"a line break in the subject", mail.Message{To: hello.To, Subject: "s\r\nBcc: eve@evil.example", Text: "t"}},
		{"a carriage return in the subject", mail.Message{To: hello.To, Subject: "s\rt", Text: "t"}},
		{"a line separator in the subject", mail.Message{To: hello.To, Subject: "s\u2028t", Text: "t"}},
		{"a next line in the subject", mail.Message{To: hello.To, Subject: "s\u0085t", Text: "t"}},
		{"a zero byte in the subject", mail.Message{To: hello.To, Subject: "s\x00", Text: "t"}},
		{"a subject that is not UTF-8", mail.Message{To: hello.To, Subject: "s\xff", Text: "t"}},
		{"no subject", mail.Message{To: hello.To, Subject: "", Text: "t"}},
		{"a long subject", mail.Message{To: hello.To, Subject: strings.Repeat("ä", 201), Text: "t"}},
		{"no text", mail.Message{To: hello.To, Subject: "s", Text: ""}},
		{"a text that is not UTF-8", mail.Message{To: hello.To, Subject: "s", Text: "\xff"}},
		{"a command to the terminal", mail.Message{To: hello.To, Subject: "s", Text: "\x1b[2J"}},
		{"a carriage return in the text", mail.Message{To: hello.To, Subject: "s", Text: "a\rb"}},
		{"a long text", mail.Message{To: hello.To, Subject: "s", Text: strings.Repeat("a", 64<<10+1)}},
	}
	server := mailtest.Start(t, mailtest.Options{})
	var out watch.Log
	senders := []mail.Sender{open(t, settings(server, "none")), mail.Print(&out)}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, s := range senders {
				if err := s.Send(t.Context(), tt.m); !mail.IsPermanent(err) {
					t.Errorf("%T: send = %v, want a permanent error", s, err)
				}
			}
		})
	}
	server.None(t)
	if out.String() != "" {
		t.Errorf("printed %q", out.String())
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	good := mail.Settings{Address: "mail.example:587", From: "noreply@atelier.example", TLS: "starttls"}
	open(t, good)
	tests := []struct {
		name   string
		change func(*mail.Settings)
	}{
		{"no port", func(s *mail.Settings) { s.Address = "mail.example" }},
		{"no host", func(s *mail.Settings) { s.Address = ":587" }},
		{"no sender", func(s *mail.Settings) { s.From = "" }},
		{"a line break in the sender's name", func(s *mail.Settings) { s.From = "\"a\r\nBcc: b\" <a@b.example>" }},
		{"a hidden line break in the sender's name", func(s *mail.Settings) { s.From = "=?utf-8?q?a=0D=0Ab?= <a@b.example>" }},
		{"another kind of TLS", func(s *mail.Settings) { s.TLS = "maybe" }},
		{"a password in the clear to another machine", func(s *mail.Settings) { s.TLS, s.Username = "none", "a" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := good
			tt.change(&s)
			if _, err := mail.SMTP(s); err == nil {
				t.Error("the settings were taken")
			}
		})
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var out watch.Log
	if err := mail.Print(&out).Send(t.Context(), hello); err != nil {
		t.Fatal(err)
	}
	want := `
atelier: no mail server is set (smtp.address). Mail for anna@studio.example: Hello
    Hello Anna,

    https://atelier.example/link/abc

`
	if got := out.String(); got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPrintFails(t *testing.T) {
	t.Parallel()
	if err := mail.Print(broken{}).Send(t.Context(), hello); err == nil || mail.IsPermanent(err) {
		t.Errorf("send = %v, want an error that can pass", err)
	}
}
