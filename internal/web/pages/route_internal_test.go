package pages

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/people/session"
)

func TestAccidentsBecomePages(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		do     func(v *pageRequest) error
		status int
		says   string
	}{
		{"a panic", func(*pageRequest) error { panic("secret words") }, 500, "The request failed because of an internal error."},
		{"an error", func(*pageRequest) error { return errors.New("secret words") }, 500, "The request failed because of an internal error."},
		{"a page that can't be made", func(v *pageRequest) error { return v.showPage("signin", "secret words") }, 500, "The request failed because of an internal error."},
		{"a fault", func(*pageRequest) error {
			return fault.New(fault.PreconditionFailed, "Not now.").Because(errors.New("secret words"))
		}, 412, "Not now."},
		{"away", func(*pageRequest) error { return fault.New(fault.Unavailable, "Away.") }, 503, "Away."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &server{openForms: map[string]bool{}}
			w := httptest.NewRecorder()
			s.newHandler([]route{{"GET", "/x", sessionIgnored, tt.do}}).ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
			if body := w.Body.String(); w.Code != tt.status || !strings.Contains(body, tt.says) || !strings.Contains(body, `role="alert"`) || strings.Contains(body, "secret words") {
				t.Errorf("answer = %d %s", w.Code, body)
			}
			if got := w.Header().Get("Retry-After"); (got == "2") != (tt.status == 503) {
				t.Errorf("wait = %q", got)
			}
		})
	}
}

func TestASessionThatEndedMeanwhile(t *testing.T) {
	t.Parallel()
	s := &server{openForms: map[string]bool{}}
	w := httptest.NewRecorder()
	h := s.newHandler([]route{{"GET", "/device", sessionIgnored, func(v *pageRequest) error { return v.showFormAgain("code", "", session.ErrSignedOut) }}})
	h.ServeHTTP(w, httptest.NewRequest("GET", "/device?code=x", nil))
	if to := w.Header().Get("Location"); w.Code != 303 || to != "/signin?next=%2Fdevice%3Fcode%3Dx" {
		t.Errorf("answer = %d %s", w.Code, to)
	}
}

func TestAbortedAnswersStayAborted(t *testing.T) {
	t.Parallel()
	s := &server{openForms: map[string]bool{}}
	h := s.newHandler([]route{{"GET", "/x", sessionIgnored, func(*pageRequest) error { panic(http.ErrAbortHandler) }}})
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("panic = %v", p)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
	t.Error("the answer was not aborted")
}
