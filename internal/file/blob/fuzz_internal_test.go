package blob

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzParseS3 proves that an address of a bucket is refused without repeating a
// password, or has an endpoint that is a scheme and a host, and is written and
// read again without a change.
func FuzzParseS3(f *testing.F) {
	for _, address := range []string{"s3://files?endpoint=https://s3.example.com&region=eu", "s3://files?endpoint=http://127.0.0.1:9000", "s3://a:secret@files", "s3://files/x", "s3://", "s3://files?endpoint=http://k:secret@h", "s3://files?key=secret", "s3://files?endpoint=ftp://h", "s3://FILES?endpoint=http://h", "s3://files?endpoint=http://h/x?y#z", "s3://files:80?endpoint=http://h"} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "s3" {
			return
		}
		const password = "canary-5f3a91"
		secret := *u
		secret.User = url.UserPassword("key", password)
		if _, err := parseS3(&secret); err == nil || strings.Contains(err.Error(), password) {
			t.Errorf("%q with a password = %v", address, err)
		}
		a, err := parseS3(u)
		if err != nil {
			return
		}
		if a.endpoint.User != nil || a.endpoint.Host == "" || a.region == "" || len(a.bucket) < 3 || len(a.bucket) > 63 {
			t.Errorf("%q = %+v", address, a)
		}
		same := url.URL{Scheme: "s3", Host: a.bucket, RawQuery: url.Values{"endpoint": {a.endpoint.String()}, "region": {a.region}}.Encode()}
		b, err := parseS3(&same)
		if err != nil || b.bucket != a.bucket || b.region != a.region || b.endpoint.Host != a.endpoint.Host || b.endpoint.Scheme != a.endpoint.Scheme {
			t.Errorf("%q = %+v, which is read as %+v, %v", address, a, b, err)
		}
	})
}
