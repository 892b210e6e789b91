package certificate

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
	"atelier/internal/web/certificate/certificatetest"
)

// TestFilesFollowChanges replaces a certificate's files well and badly. What is
// served is always the last that could be used.
func TestFilesFollowChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile := filepath.Join(dir, "cert.pem")
	keyFile := filepath.Join(dir, "key.pem")
	put := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := certificatetest.Issue(t, -time.Hour, 90*24*time.Hour, "first.test")
	second := certificatetest.Issue(t, -time.Hour, 90*24*time.Hour, "second.test")
	third := certificatetest.Issue(t, -time.Hour, 90*24*time.Hour, "third.test")
	expired := certificatetest.Issue(t, -2*time.Hour, -time.Hour, "expired.test")

	log := &watch.Log{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	if _, err := LoadFiles(certFile, keyFile, logger, time.Now); err == nil {
		t.Fatal("files that are not there were loaded")
	}
	put(certFile, first.Cert)
	put(keyFile, second.Key)
	if _, err := LoadFiles(certFile, keyFile, logger, time.Now); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Fatalf("a key of another certificate: %v, want an error with the file", err)
	}
	put(keyFile, first.Key)
	f, err := LoadFiles(certFile, keyFile, logger, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	config := f.TLSConfig()
	serves := func(when, name string) {
		t.Helper()
		for range 3 { // content counts once it was found twice
			f.reloadChanged()
		}
		cert, err := config.GetCertificate(nil)
		if err != nil || cert.Leaf.DNSNames[0] != name {
			t.Errorf("%s: %v %v is served, want %s", when, cert.Leaf.DNSNames, err, name)
		}
	}
	warnings := func() int { return strings.Count(log.String(), "new certificate rejected") }

	serves("at first", "first.test")
	put(certFile, second.Cert)
	f.reloadChanged() // in the middle of a replacement
	put(keyFile, second.Key)
	serves("replaced", "second.test")
	if warnings() != 0 {
		t.Errorf("a replacement was warned of: %s", log)
	}

	put(certFile, []byte("not a certificate"))
	serves("damaged", "second.test")
	put(certFile, third.Cert)
	serves("not the key's", "second.test")
	if err := os.Remove(certFile); err != nil {
		t.Fatal(err)
	}
	serves("gone", "second.test")
	put(certFile, expired.Cert)
	put(keyFile, expired.Key)
	serves("expired", "second.test")
	put(certFile, make([]byte, maxFileBytes+1))
	serves("endless", "second.test")
	if warnings() != 5 {
		t.Errorf("%d warnings, want one of each of five: %s", warnings(), log)
	}
	put(certFile, third.Cert)
	put(keyFile, third.Key)
	serves("well again", "third.test")
}

func TestExpiryIsWarnedOfOnceADay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pair := certificatetest.Issue(t, -80*24*time.Hour, 10*24*time.Hour, "a.test")
	for name, content := range map[string][]byte{"cert.pem": pair.Cert, "key.pem": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := &watch.Log{}
	now := time.Now()
	f, err := LoadFiles(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), slog.New(slog.NewTextHandler(log, nil)), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	for range 48 {
		f.warnOfExpiry()
		now = now.Add(time.Hour)
	}
	if n := strings.Count(log.String(), "expires soon"); n != 2 {
		t.Errorf("%d warnings in two days, want 2", n)
	}
	for lifetime, left := range map[time.Duration]time.Duration{90: 15, 6: 2, 365: 20} {
		fresh := certificatetest.Issue(t, -(lifetime-left)*24*time.Hour, left*24*time.Hour, "a.test")
		if expiresSoon(fresh.Leaf, time.Now()) {
			t.Errorf("a certificate of %d days with %d left should have been replaced", lifetime, left)
		}
	}
}
