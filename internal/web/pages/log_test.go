package pages_test

import (
	"net/url"
	"regexp"
	"strings"
	"testing"

	"atelier/internal/people/company"
)

// TestNoSecretIsLogged goes through the flows and looks for what it was given.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	each(t, nil, func(t *testing.T, s *site) {
		anna := s.person("anna@studio.example")
		c, _ := s.company("North Light", "Compositing", company.RoleAdmin, anna)
		b := s.browser()
		invitation := s.invite(company.Draft{CompanyID: c.ID})
		b.get("/invitation?token=" + invitation)
		b.get("/signup?invitation=" + invitation)
		codes := s.start("blender", "x", "198.51.100.7")
		b.get("/device?code=" + codes.UserCode)
		b.submit("/signin?next="+url.QueryEscape("/device?code="+codes.UserCode), "/signin", "email", "anna@studio.example", "password", password)
		secrets := []string{password, invitation, codes.UserCode, codes.DeviceCode, b.cookie(sessionCookie), b.cookie(formCookie)}
		b.submit("/device?code="+codes.UserCode, "/device", "verdict", "approve").want(200)
		in, err := s.poll(codes)
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, in.Tokens.ID, in.Tokens.Refresh)
		secrets = append(secrets, b.submit("/tokens", "/tokens", "name", "x").minted())
		b.submit("/forgot", "/forgot", "email", "anna@studio.example")
		for _, path := range []string{"/reset", "/drop"} {
			link := s.link(path)
			b.get(link).want(200)
			secrets = append(secrets, strings.TrimPrefix(link, path+"?token="))
		}
		log := s.log.String()
		for _, secret := range secrets {
			if len(secret) < 8 || strings.Contains(log, secret) {
				t.Errorf("the log has %q", secret)
			}
		}
		if !regexp.MustCompile(`method=GET route=/tokens path=/tokens .*person=` + anna.ID).MatchString(log) {
			t.Errorf("the log does not say who asked: %s", log)
		}
	})
}
