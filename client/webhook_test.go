package client_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"atelier/client"
)

const (
	secret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	oldSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

func signedHeader(secret string, at time.Time, body string) http.Header {
	stamp := fmt.Sprint(at.Unix())
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "msg_1.%s.%s", stamp, body)
	h := http.Header{}
	h.Set("webhook-id", "msg_1")
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

// TestVerifyVector has the example of the Standard Webhooks specification.
func TestVerifyVector(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const stamp = 1614265330
		time.Sleep(time.Until(time.Unix(stamp, 0)))
		v, err := client.NewVerifier(secret)
		if err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
		h.Set("webhook-timestamp", fmt.Sprint(stamp))
		h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
		if err := v.Verify(h, []byte(`{"test": 2432232314}`)); err != nil {
			t.Error(err)
		}
	})
}

func TestVerify(t *testing.T) {
	t.Parallel()
	now := time.Now()
	const body = `{"type": "generation.succeeded", "data": {"request_id": "r", "status": "succeeded"}}`
	good := signedHeader(secret, now, body)
	both := good.Clone()
	both.Set("webhook-signature", "v2,xyz v1,!!! "+signedHeader(oldSecret, now, body).Get("webhook-signature")+" "+good.Get("webhook-signature"))
	unsigned := good.Clone()
	unsigned.Del("webhook-signature")
	renamed := good.Clone()
	renamed.Set("webhook-id", "msg_2")
	for _, tt := range []struct {
		name    string
		header  http.Header
		body    string
		secrets []string
		ok      bool
	}{
		{"genuine", good, body, []string{secret}, true},
		{"several signatures", both, body, []string{secret}, true},
		{"signed with the old secret", signedHeader(oldSecret, now, body), body, []string{secret, oldSecret}, true},
		{"signed with another secret", signedHeader(oldSecret, now, body), body, []string{secret}, false},
		{"four minutes old", signedHeader(secret, now.Add(-4*time.Minute), body), body, []string{secret}, true},
		{"six minutes old", signedHeader(secret, now.Add(-6*time.Minute), body), body, []string{secret}, false},
		{"from the future", signedHeader(secret, now.Add(6*time.Minute), body), body, []string{secret}, false},
		{"another body", good, body + " ", []string{secret}, false},
		{"another id", renamed, body, []string{secret}, false},
		{"unsigned", unsigned, body, []string{secret}, false},
		{"empty", http.Header{}, body, []string{secret}, false},
	} {
		v, err := client.NewVerifier(tt.secrets...)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Verify(tt.header, []byte(tt.body)); (err == nil) != tt.ok || err != nil && !errors.Is(err, client.ErrWebhook) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	for _, bad := range [][]string{{}, {""}, {"whsec_"}, {"whsec_!"}, {secret, "short"}} {
		if _, err := client.NewVerifier(bad...); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestWebhookHandler(t *testing.T) {
	t.Parallel()
	v, err := client.NewVerifier(secret)
	if err != nil {
		t.Fatal(err)
	}
	var got []client.ReceivedWebhook
	h := v.Handler(func(_ *http.Request, d client.ReceivedWebhook) error {
		got = append(got, d)
		if d.Type == "generation.failed" {
			return errors.New("later")
		}
		return nil
	})
	send := func(method string, header http.Header, body string) int {
		r := httptest.NewRequest(method, "/hook", strings.NewReader(body))
		if header != nil {
			r.Header = header
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for _, tt := range []struct {
		body string
		want int
	}{
		{`{"type": "generation.succeeded", "data": {"request_id": "r"}}`, 204},
		{`{"type": "generation.failed", "data": {"request_id": "r"}}`, 500},
		{`{"type": "budget.reached", "data": {"threshold_percent": 80}}`, 204},
		{`{"type": "later.kind", "data": 7}`, 204},
		{`no JSON`, 400},
	} {
		if code := send(http.MethodPost, signedHeader(secret, time.Now(), tt.body), tt.body); code != tt.want {
			t.Errorf("%s: %d, want %d", tt.body, code, tt.want)
		}
	}
	if code := send(http.MethodPost, nil, "{}"); code != http.StatusUnauthorized {
		t.Errorf("unsigned: %d", code)
	}
	if code := send(http.MethodGet, nil, ""); code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", code)
	}
	if len(got) != 4 || got[0].ID != "msg_1" || got[0].Run.RequestID != "r" || got[2].Budget.ThresholdPercent != 80 || got[3].Run != nil {
		t.Errorf("handled = %+v", got)
	}
}
