package pages_test

import (
	"archive/zip"
	"strings"
	"testing"
)

func TestDownloadOfOnesData(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		const email = "anna@studio.example"
		b := s.signedIn(s.person(email))
		for range 5 {
			a := b.submit("/account", "/account/export").want(200)
			if kind, how := a.header.Get("Content-Type"), a.header.Get("Content-Disposition"); kind != "application/zip" || how != "attachment; filename=atelier-2026-11-15.zip" {
				t.Fatalf("type = %s, disposition = %s", kind, how)
			}
			r, err := zip.NewReader(strings.NewReader(a.body), int64(len(a.body)))
			if err != nil {
				t.Fatal(err)
			}
			if r.File[0].Name != "README.txt" || len(r.File) != 16 {
				t.Errorf("%d files, the first is %s", len(r.File), r.File[0].Name)
			}
		}
		b.submit("/account", "/account/export").want(429, "five times a day")
		s.browser().get("/account/delete").leads("/signin?next=%2Faccount%2Fdelete")
	})
}

func TestDeletionOfOnesAccount(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		const email = "anna@studio.example"
		anna := s.person(email)
		b, other := s.signedIn(anna), s.signedIn(anna)
		b.get("/account").want(200, "Your data", "Delete your account")
		b.submit("/account/delete", "/account/delete", "email", "bert@studio.example").want(400, "This is not the e-mail address of the account.")
		b.get("/account").want(200)
		b.submit("/account/delete", "/account/delete", "email", "Anna@studio.example").leads("/signin?done=farewell")
		b.get("/signin?done=farewell").want(200, "Your account is deleted.")
		if b.cookie(sessionCookie) != "" {
			t.Error("the browser kept its cookie")
		}
		other.get("/account").leads("/signin?next=%2Faccount")
		b.signIn(email, "correct horse battery").want(403)
		if n := s.count("person WHERE deleted IS NOT NULL"); n != 1 {
			t.Errorf("%d people are deleted", n)
		}
	})
}
