package webhook_test

import (
	"net/netip"
	"strings"
	"testing"

	"atelier/internal/notify/webhook"
)

// name makes a host name of so many bytes.
func name(n int) string {
	s := strings.Repeat(strings.Repeat("a", 62)+".", n/63+1)[:n]
	return strings.TrimSuffix(s, ".")
}

func TestGoodURLs(t *testing.T) {
	t.Parallel()
	g := webhook.NewGuard(nil)
	for _, u := range []string{
		"https://example.com", "https://example.com/", "https://example.com/hooks/7?a=b&c=%20d", "HTTPS://Example.COM/Hook",
		"https://example.com:443/", "https://example.com:1024/", "https://example.com:8443/", "https://example.com:65535/",
		"https://a.b.c.d.example.com/", "https://xn--bcher-kva.example/", "https://my_host.example.com/", "https://1.example.com/",
		"https://127.0.0.1.example.com/", "https://0x7f.example/", "https://example.0xyz/", "https://receiver/", "https://localhost.example.com/", "https://mylocalhost/",
		"https://8.8.8.8/", "https://8.8.8.8:8443/x", "https://[2606:4700::1111]/", "https://[2606:4700::1111]:8443/",
		"https://" + strings.Repeat("a", 63) + ".example/", "https://" + name(253) + "/",
		"https://example.com/" + strings.Repeat("a", 2048-len("https://example.com/")),
		"https://example.com/@", "https://example.com/a:b", "https://example.com//x", "https://example.com/?u=https://10.0.0.1/", "https://example.com?x",
	} {
		if problem := g.CheckURL(u); problem != "" {
			t.Errorf("%s: %s", u, problem)
		}
	}
}

func TestHostileURLs(t *testing.T) {
	t.Parallel()
	long := "https://example.com/" + strings.Repeat("a", 2049-len("https://example.com/"))
	bad := map[string][]string{
		"https://": {"", "example.com", "//example.com/", "/hook", "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_x",
			"javascript:alert(1)", "data:text/plain,x", "ws://example.com", "wss://example.com", "httpss://example.com", "https:example.com", "https+unix://x/", "h2://example.com", "ssh://example.com", "ldap://example.com", "dict://example.com:11211/", "jar:https://example.com!/"},
		"no host": {"https://", "https:/example.com", "https:///", "https:///hook", "https://:443/", "https://:8443", "https://?x", "https:///example.com"},
		"credentials": {"https://user@example.com/", "https://user:secret@example.com/", "https://:secret@example.com/", "https://@example.com/", "https://example.com@10.0.0.1/",
			"https://example.com:443@127.0.0.1/", "https://a@b@example.com/", "https://%61@example.com/"},
		"fragment": {"https://example.com/#", "https://example.com/#a", "https://example.com#a", "https://example.com/?a#b", "https://example.com#@10.0.0.1/"},
		"port": {"https://example.com:80/", "https://example.com:0/", "https://example.com:1/", "https://example.com:22/", "https://example.com:25/", "https://example.com:442/", "https://example.com:444/",
			"https://example.com:1023/", "https://example.com:65536/", "https://example.com:99999999999/", "https://example.com:0443/", "https://example.com:08443/", "https://example.com:/", "https://[2606:4700::1111]:/",
			"https://[2606:4700::1111]:22/", "https://8.8.8.8:53/"},
		"2048": {long, long + "a", "https://" + strings.Repeat("a", 1<<20)},
		"escaped": {" ", "https://example.com/a b", "https://example.com /", " https://example.com/", "https://example.com/ ", "https://example.com/\n", "https://exam\tple.com/", "https://example.com/\x00", "https://example.com/\x7f", "https://example.com\r\nX: y/",
			"https://bücher.example/", "https://１２７.０.０.１/", "https://①②⑦.⓪.⓪.①/", "https://127。0。0。1/", "https://ⓛocalhost/", "https://example.com/größe", "https://example.com/\xff", "https://example.com/\u202e",
			`https://example.com\@10.0.0.1/`, `https:\\example.com\`, `https://10.0.0.1\.example.com/`, `https://example.com/\x`},
		"valid": {"https://example.com:port/", "https://example.com:-1/", "https://example.com:8443:443/", "https://exa%6dple.com/", "https://%31%32%37.0.0.1/", "https://127%2e0.0.1/", "https://exam<ple.com/", "https://[::1/", "https://::1/", "https://2606:4700::1111/",
			"https://[127.0.0.1]:x.y/", "https://[127.0.0.1]/",
			"https://[example.com]/", "https://[]/", "https://[v1.fe80]/", "https://[::1::2]/", "https://[12345::1]/",
			"https://example.com/%zz", "https://[::1]a/", "https://a[::1]/", "https://example..com/", "https://.example.com/", "https://example.com./", "https://example.com../", "https://./", "https://-example.com/", "https://example-.com/",
			"https://exam*ple.com/", "https://*.example.com/", "https://example,com/", "https://ex!ample.com/", "https://a$b/", "https://a'b/", "https://a(b)/", "https://a;b/", "https://a=b/", "https://a&b/", "https://a+b/",
			"https://" + strings.Repeat("a", 64) + ".example/", "https://localhost./", "https://LOCALHOST./", "https://127.0.0.1./", "https://10.0.0.1./"},
		"too long":  {"https://" + name(254) + "/", "https://" + name(500) + "/"},
		"localhost": {"https://localhost/", "https://localhost:8443/", "https://LocalHost/", "https://a.localhost/", "https://x.y.LOCALHOST:8443/"},
		"canonical form": {"https://2130706433/", "https://0x7f000001/", "https://0x7F.0.0.1/", "https://0x7f.1/", "https://017700000001/", "https://0177.0.0.1/", "https://0177.0.0.01/", "https://127.1/", "https://127.0.1/", "https://0/", "https://00.0.0.0/", "https://1/", "https://0x/", "https://0x0/",
			"https://10.1/", "https://192.168.257/", "https://3232235521/", "https://0xc0a80001/", "https://0xA9FEA9FE/", "https://2852039166/", "https://0251.0376.0251.0376/", "https://169.254.43518/", "https://256.256.256.256/", "https://127.0.0.256/", "https://127.0.0.0.1/", "https://127.0.0.1.1/",
			"https://a.b.c.1/", "https://example.1/", "https://example.0x1/", "https://8.8.8.08/", "https://4294967296/", "https://99999999999999999999/",
			"https://[::ffff:127.0.0.1]/", "https://[::FFFF:7f00:1]/", "https://[::ffff:8.8.8.8]/", "https://[0:0:0:0:0:0:0:1]/", "https://[::0001]/", "https://[2606:4700:0::1111]/", "https://[2606:4700::0:1111]/", "https://[::1.2.3.4]/"},
		"sent to this IP": {"https://127.0.0.1/", "https://127.0.0.1:8443/", "https://127.255.255.254/", "https://0.0.0.0/", "https://10.0.0.1/", "https://172.16.0.1/", "https://172.31.255.255/", "https://192.168.0.1/", "https://169.254.169.254/latest/meta-data/", "https://100.64.0.1/", "https://100.100.100.200/",
			"https://192.0.0.192/", "https://192.0.2.1/", "https://192.88.99.1/", "https://198.18.0.1/", "https://198.51.100.1/", "https://203.0.113.1/", "https://224.0.0.1/", "https://240.0.0.1/", "https://255.255.255.255/",
			"https://[::]/", "https://[::1]/", "https://[::1]:8443/", "https://[fe80::1]/", "https://[fc00::1]/", "https://[fd00:ec2::254]/", "https://[ff02::1]/", "https://[64:ff9b::7f00:1]/", "https://[64:ff9b::808:808]/", "https://[64:ff9b:1::1]/", "https://[2002:7f00:1::]/", "https://[2001::1]/", "https://[2001:db8::1]/",
			"https://[3fff::1]/", "https://[5f00::1]/", "https://[100::1]/", "https://[fec0::1]/", "https://[::7f00:1]/", "https://[fe80::1%25eth0]/", "https://[2606:4700::1%25eth0]/"},
	}
	g, seen := webhook.NewGuard(nil), 0
	for why, urls := range bad {
		for _, u := range urls {
			seen++
			if problem := g.CheckURL(u); !strings.Contains(problem, why) {
				t.Errorf("%.80q: %q, want %q", u, problem, why)
			}
		}
	}
	if seen < 150 {
		t.Errorf("only %d addresses were tried", seen)
	}
}

func TestAllowedURLs(t *testing.T) {
	t.Parallel()
	g := webhook.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8")})
	for u, want := range map[string]bool{
		"https://127.0.0.1:8443/": true, "https://127.9.9.9/": true, "https://localhost:8443/": true, "https://[fd00::1]:8443/": true,
		"https://10.0.0.1/": false, "https://[::1]/": false, "https://127.1/": false, "http://127.0.0.1:8443/": false, "https://127.0.0.1:80/": false,
	} {
		if problem := g.CheckURL(u); (problem == "") != want {
			t.Errorf("%s: %q", u, problem)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	f.Add("https://example.com:8443/a?b")
	f.Add("https://[::ffff:127.0.0.1]/")
	f.Fuzz(func(t *testing.T, u string) {
		if webhook.NewGuard(nil).CheckURL(u) != "" {
			return
		}
		if !strings.EqualFold(u[:8], "https://") || len(u) > 2048 || strings.ContainsAny(u, "\r\n\x00#\\ ") {
			t.Errorf("%q passes", u)
		}
	})
}
