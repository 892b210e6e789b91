package catalog

import (
	"regexp"
	"strings"
	"testing"
)

func TestSanitizeHTML(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"text", `plain & "simple"`, `plain &amp; &#34;simple&#34;`},
		{"running text", `<p>That is <b>all</b>.<br/>Really.</p><hr>`, `<p>That is <b>all</b>.<br>Really.</p><hr>`},
		{"capitals", `<P>a<BR>b</P>`, `<p>a<br>b</p>`},
		{"link", `<a href="https://example.com/?a=1&amp;b=2" onclick="x()" target=_blank>a</a>`,
			`<a href="https://example.com/?a=1&amp;b=2" rel="noopener noreferrer nofollow">a</a>`},
		{"mail", `<a href="mailto:anna@example.com">a</a>`, `<a href="mailto:anna@example.com" rel="noopener noreferrer nofollow">a</a>`},
		{"script address", `<a href=" java&#10;script:alert(1)">a</a><a href="JAVASCRIPT:x">b</a><a href="data:text/html,x">c</a><a href="//e.com">d</a>`,
			`<a>a</a><a>b</a><a>c</a><a>d</a>`},
		{"handlers", `<p onmouseover="x()" style="position:fixed" id="form" class="c">a</p>`, `<p>a</p>`},
		{"script", `a<script>alert("<p>")</script>b<style>p{}</style>c`, `abc`},
		{"nested", `a<svg><svg><script>x</script></svg><p>x</p></svg>b`, `ab`},
		{"frame", `a<iframe src="https://example.com"></iframe>b<object><p>x</p></object>c`, `abc`},
		{"form", `<form action="/x"><input name="password"><button>Send</button></form>a`, `a`},
		{"picture", `<img src=x onerror=alert(1)>a`, `a`},
		{"unknown", `<div><blink>a</blink></div>`, `a`},
		{"comment", `a<!-- <script> -->b<!DOCTYPE html>c<?php d ?>e`, `abce`},
		{"left open", `<ul><li>a<li><b>b`, `<ul><li>a<li><b>b</b></li></li></ul>`},
		{"crossed", `<b><i>a</b>b</i>`, `<b><i>a</i></b>b`},
		{"ends alone", `a</p></script>b`, `ab`},
		{"half a tag", `a<script`, `a`},
		{"no end", `a<script>alert(1)`, `a`},
		{"written twice", `&lt;script&gt;alert(1)&lt;/script&gt;`, `&lt;script&gt;alert(1)&lt;/script&gt;`},
		{"split", `<scr<script>ipt>alert(1)</scr</script>ipt>`, `ipt&gt;alert(1)ipt&gt;`},
		{"hidden end", `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`, `&#34;&gt;`},
	} {
		if got := sanitizeHTML(c.text); got != c.want {
			t.Errorf("%s: %s became\n%s\nwant\n%s", c.name, c.text, got, c.want)
		}
	}
}

// safeTag is what sanitized HTML may have between angle brackets.
var safeTag = regexp.MustCompile(`</?(?:` + strings.Join(keptElements, "|") + `)>|<a href="(?:https?|mailto):[^"<>]*" rel="noopener noreferrer nofollow">`)

func FuzzSanitizeHTML(f *testing.F) {
	f.Add(`<p>a<b>b</p><a href="https://example.com">c</a><svg><style><img src=x onerror=y></style></svg>`)
	f.Add("<table><tr><td>\x00a<plaintext></table><script>")
	f.Fuzz(func(t *testing.T, text string) {
		once := sanitizeHTML(text)
		if again := sanitizeHTML(once); again != once {
			t.Errorf("%q became %q and then %q", text, once, again)
		}
		if rest := safeTag.ReplaceAllString(once, ""); strings.ContainsAny(rest, "<>") {
			t.Errorf("%q became %q", text, once)
		}
	})
}
