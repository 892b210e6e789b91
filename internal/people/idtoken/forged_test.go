package idtoken_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/people/idtoken"
)

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func header(kid string) string { return `{"alg":"EdDSA","kid":"` + kid + `","typ":"JWT"}` }

func honest(who idtoken.Claims) map[string]any {
	return map[string]any{"iss": issuer, "aud": issuer, "sub": who.PersonID, "device_id": who.DeviceID, "token_use": "id",
		"iat": start.Unix(), "exp": start.Add(lifetime).Unix(), "jti": ids.New()}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// forge signs any header and payload.
func forge(header, payload string, key ed25519.PrivateKey) string {
	input := b64(header) + "." + b64(payload)
	return input + "." + b64(string(ed25519.Sign(key, []byte(input))))
}

// flip changes one character of a token to another of the alphabet.
func flip(token string, at int) string {
	with := byte('A')
	if token[at] == 'A' {
		with = 'B'
	}
	return token[:at] + string(with) + token[at+1:]
}

// forgeries are tokens that must not count, by what is wrong with them. They
// are as good as can be in every other way: signed with the real key wherever
// the attack does not rule that out.
func forgeries(t testing.TB, in *installation, good string) map[string]string {
	t.Helper()
	kid, key := in.key(t)
	who := someone()
	bad := map[string]string{}
	add := func(name, token string) {
		if _, dup := bad[name]; dup || token == good {
			t.Fatalf("forgery %q is there twice, or none", name)
		}
		bad[name] = token
	}
	payload := text(honest(who))

	// Other algorithms.
	for _, alg := range []string{"none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "PS256", "PS512",
		"ES256", "ES384", "ES512", "ES256K", "Ed25519", "ed25519", "eddsa", "EDDSA", "EdDSA ", " EdDSA", "Ed448", "dir", "A256GCM"} {
		h := strings.Replace(header(kid), "EdDSA", alg, 1)
		add("alg "+alg+", our signature", forge(h, payload, key))
		add("alg "+alg+", no signature", b64(h)+"."+b64(payload)+".")
	}
	public := key.Public().(ed25519.PublicKey)
	for name, secret := range map[string]string{"public key": string(public), "public key in base64": b64(string(public)),
		"public key in hex": fmt.Sprintf("%x", public), "nothing": "", "key id": kid} {
		for alg, hash := range map[string]crypto.Hash{"HS256": crypto.SHA256, "HS512": crypto.SHA512} {
			input := b64(strings.Replace(header(kid), "EdDSA", alg, 1)) + "." + b64(payload)
			mac := hmac.New(hash.New, []byte(secret))
			mac.Write([]byte(input))
			add(alg+" with the "+name, input+"."+b64(string(mac.Sum(nil))))
		}
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for alg, sign := range map[string]func(sum []byte) ([]byte, error){
		"RS256": func(sum []byte) ([]byte, error) { return rsa.SignPKCS1v15(rand.Reader, rsaKey, crypto.SHA256, sum) },
		"PS256": func(sum []byte) ([]byte, error) { return rsa.SignPSS(rand.Reader, rsaKey, crypto.SHA256, sum, nil) },
		"ES256": func(sum []byte) ([]byte, error) {
			r, s, err := ecdsa.Sign(rand.Reader, ecKey, sum)
			if err != nil {
				return nil, err
			}
			return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), nil
		},
	} {
		input := b64(strings.Replace(header(kid), "EdDSA", alg, 1)) + "." + b64(payload)
		sum := sha256.Sum256([]byte(input))
		signature, err := sign(sum[:])
		if err != nil {
			t.Fatal(err)
		}
		add(alg+" with a key of their own", input+"."+b64(string(signature)))
	}

	// Other keys.
	_, theirs, _ := ed25519.GenerateKey(nil)
	add("signed by somebody else under our key id", forge(header(kid), payload, theirs))
	add("signed by somebody else under their key id", forge(header(ids.New()), payload, theirs))
	elsewhere := install(t, "sqlite")
	foreign, _ := elsewhere.sign(t, elsewhere.node(), who)
	add("of another installation", foreign)
	for _, other := range []string{"", "0", strings.ToLower(kid), strings.ToUpper(kid), kid + "0", kid[1:], " " + kid, kid + " ", kid + `\u0000`,
		"../../../../dev/null", "/dev/null", "..%2f..%2fdev%2fnull", "' OR 1=1 --", "x' UNION SELECT 'AAAA", "https://evil.example/k", "*", "%", "\u00e9",
		strings.Repeat("a", 300)} {
		add("kid "+other, forge(header(other), payload, key))
	}
	for name, h := range map[string]string{
		"no kid": `{"alg":"EdDSA","typ":"JWT"}`, "kid null": `{"alg":"EdDSA","kid":null,"typ":"JWT"}`,
		"kid number": `{"alg":"EdDSA","kid":1,"typ":"JWT"}`, "kid list": `{"alg":"EdDSA","kid":["` + kid + `"],"typ":"JWT"}`,
		"kid twice":   `{"alg":"EdDSA","kid":"` + kid + `","kid":"` + kid + `","typ":"JWT"}`,
		"kid escaped": `{"alg":"EdDSA","kid":"\u00` + fmt.Sprintf("%x", kid[0]) + kid[1:] + `","typ":"JWT"}`,
		"Kid":         `{"alg":"EdDSA","Kid":"` + kid + `","typ":"JWT"}`,
		"no alg":      `{"kid":"` + kid + `","typ":"JWT"}`, "alg twice": `{"alg":"none","alg":"EdDSA","kid":"` + kid + `","typ":"JWT"}`,
		"alg list": `{"alg":["EdDSA"],"kid":"` + kid + `","typ":"JWT"}`, "no typ": `{"alg":"EdDSA","kid":"` + kid + `"}`,
		"header with space": `{"alg":"EdDSA", "kid":"` + kid + `","typ":"JWT"}`, "header with a tail": header(kid) + " ", "two headers": header(kid) + header(kid),
		"header with a mark": "\ufeff" + header(kid), "header a list": "[" + header(kid) + "]", "header empty": "{}", "header no JSON": "EdDSA", "header null": "null",
	} {
		add(name, forge(h, payload, key))
	}

	// Other types, and more in the header than we write.
	for _, typ := range []string{"jwt", "at+jwt", "JWE", "JOSE", "application/jwt", "refresh", ""} {
		add("typ "+typ, forge(strings.Replace(header(kid), "JWT", typ, 1), payload, key))
	}
	jwk := `{"kty":"OKP","crv":"Ed25519","x":"` + b64(string(theirs.Public().(ed25519.PublicKey))) + `"}`
	for name, more := range map[string]string{
		"jku": `"jku":"https://evil.example/keys"`, "x5u": `"x5u":"https://evil.example/cert"`, "x5c": `"x5c":["AAAA"]`, "x5t": `"x5t":"AAAA"`,
		"x5t#S256": `"x5t#S256":"AAAA"`, "jwk": `"jwk":` + jwk, "crit b64": `"crit":["b64"],"b64":true`, "crit b64 false": `"crit":["b64"],"b64":false`,
		"b64 false": `"b64":false`, "crit unknown": `"crit":["exp"],"exp":1`, "crit empty": `"crit":[]`, "crit null": `"crit":null`, "cty": `"cty":"JWT"`,
		"zip": `"zip":"DEF"`, "nonce": `"nonce":"a"`, "enc": `"enc":"A256GCM"`, "url": `"url":"https://evil.example"`, "unknown": `"a":"b"`,
	} {
		h := strings.TrimSuffix(header(kid), "}") + "," + more + "}"
		add("header with "+name+", our signature", forge(h, payload, key))
		add("header with "+name+", their signature", forge(h, payload, theirs))
	}

	// Other claims, under our signature.
	for name, change := range map[string]map[string]any{
		"iss other": {"iss": "https://evil.example"}, "iss with slash": {"iss": issuer + "/"}, "iss empty": {"iss": ""}, "iss list": {"iss": []string{issuer}}, "iss missing": {"iss": nil},
		"aud other": {"aud": "https://evil.example"}, "aud list of two": {"aud": []string{issuer, "https://evil.example"}}, "aud empty list": {"aud": []string{}},
		"aud missing": {"aud": nil}, "aud number": {"aud": 1}, "aud upper case": {"aud": strings.ToUpper(issuer)},
		"token_use refresh": {"token_use": "refresh"}, "token_use access": {"token_use": "access"}, "token_use ID": {"token_use": "ID"}, "token_use empty": {"token_use": ""},
		"token_use missing": {"token_use": nil}, "token_use list": {"token_use": []string{"id"}},
		"exp now": {"exp": start.Unix()}, "exp past": {"exp": start.Unix() - 1}, "exp long past": {"exp": 1, "iat": 0}, "exp zero": {"exp": 0}, "exp negative": {"exp": -1},
		"exp missing": {"exp": nil}, "exp text": {"exp": fmt.Sprint(start.Add(lifetime).Unix())}, "exp huge": {"exp": 1e300}, "exp date": {"exp": start.Add(lifetime)}, "exp before iat": {"iat": start.Unix() + 50, "exp": start.Unix() + 40},
		"iat future": {"iat": start.Unix() + 62}, "iat tomorrow": {"iat": start.AddDate(0, 0, 1).Unix(), "exp": start.AddDate(0, 0, 2).Unix()}, "iat missing": {"iat": nil}, "iat text": {"iat": "1"},
		"sub missing": {"sub": nil}, "sub empty": {"sub": ""}, "sub short": {"sub": "abc"}, "sub no id": {"sub": "' OR 1=1 --aaaaaaaaa"}, "sub number": {"sub": 1}, "sub list": {"sub": []string{who.PersonID}},
		"device_id missing": {"device_id": nil}, "device_id empty": {"device_id": ""}, "device_id long": {"device_id": who.DeviceID + "0"}, "device_id object": {"device_id": map[string]any{}},
		"jti missing": {"jti": nil}, "jti empty": {"jti": ""},
	} {
		c := honest(who)
		maps.Copy(c, change)
		maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
		add(name, forge(header(kid), text(c), key))
	}
	for name, p := range map[string]string{
		"payload empty": "", "payload null": "null", "payload list": "[" + payload + "]", "payload text": `"` + kid + `"`, "payload cut": payload[:len(payload)-1],
		"payload with a tail": payload + "x", "payload twice": payload + payload, "sub twice": `{"sub":"` + ids.New() + `",` + payload[1:],
		"Sub for sub": strings.Replace(payload, `"sub"`, `"Sub"`, 1), "payload not UTF-8": "\xff\xfe" + payload,
	} {
		add(name, forge(header(kid), p, key))
	}

	// Other forms of a good token.
	part := strings.Split(good, ".")
	flattened := map[string]any{"payload": part[1], "protected": part[0], "signature": part[2]}
	general := map[string]any{"payload": part[1], "signatures": []any{map[string]any{"protected": part[0], "signature": part[2]}}}
	double := map[string]any{"payload": part[1], "signatures": []any{general["signatures"].([]any)[0], general["signatures"].([]any)[0]}}
	for name, form := range map[string]string{
		"JSON flattened": text(flattened), "JSON general": text(general), "JSON with two signatures": text(double), "JSON after space": " " + text(flattened),
		"empty": "", "one dot": ".", "two dots": "..", "three dots": "...", "no dots": strings.ReplaceAll(good, ".", ""),
		"two parts": part[0] + "." + part[1], "two parts and a dot": part[0] + "." + part[1] + ".", "four parts": good + "." + part[2], "four parts, first empty": "." + good,
		"four parts, last empty": good + ".", "five parts, as encrypted": good + "." + part[1] + "." + part[2],
		"no header": "." + part[1] + "." + part[2], "no payload": part[0] + ".." + part[2], "parts turned": part[1] + "." + part[0] + "." + part[2],
		"space before": " " + good, "space after": good + " ", "line end after": good + "\n", "return after": good + "\r", "both after": good + "\r\n", "tab before": "\t" + good, "NUL after": good + "\x00",
		"line end in the header": part[0][:5] + "\n" + part[0][5:] + "." + part[1] + "." + part[2], "line end in the payload": part[0] + "." + part[1][:5] + "\n" + part[1][5:] + "." + part[2],
		"line end in the signature": part[0] + "." + part[1] + "." + part[2][:5] + "\r\n" + part[2][5:], "line end before a dot": part[0] + "\n." + part[1] + "." + part[2],
		"padded header": part[0] + "=." + part[1] + "." + part[2], "padded payload": part[0] + "." + part[1] + "==." + part[2], "padded signature": good + "==", "padding only": good + "=",
		"trailing bytes": good + "AAAA", "trailing byte": good + "A", "trailing letter": good + "!", "signature twice": good + part[2],
		"Bearer": "Bearer " + good, "quoted": `"` + good + `"`, "standard base64": strings.NewReplacer("-", "+", "_", "/").Replace(good) + "+", "percent encoded": strings.ReplaceAll(good, ".", "%2E"),
		"huge": good + strings.Repeat("A", 5000), "huge and good": forge(header(kid), strings.TrimSuffix(payload, "}")+`,"a":"`+strings.Repeat("a", 4000)+`"}`, key), "megabyte": strings.Repeat(good+".", 2000),
		"lower case": strings.ToLower(good), "upper case": strings.ToUpper(good), "not UTF-8": "\xff" + good, "full-width dot": part[0] + "．" + part[1] + "." + part[2],
		"a refresh token": "atl_r_" + ids.Text(43), "an access token": "atl_p_" + ids.Text(49), "a device code": "atl_d_" + ids.Text(43), "a null": "null", "a cookie": "sid=" + ids.Text(43),
		"half the signature": part[0] + "." + part[1] + "." + part[2][:43], "a longer signature": part[0] + "." + part[1] + "." + b64(strings.Repeat("\x00", 65)),
		"a signature of zeros": part[0] + "." + part[1] + "." + b64(strings.Repeat("\x00", 64)), "a hash for a signature": part[0] + "." + part[1] + "." + b64(string(sum512(good))),
	} {
		add(name, form)
	}
	// The last character of a 64-byte signature in base64 has four unused bits.
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, good[len(good)-1])
	for bits := 1; bits < 16; bits++ {
		add(fmt.Sprintf("unused bits %d", bits), good[:len(good)-1]+string(alphabet[last&^15|(last&15)^bits]))
	}
	// Ed25519 signatures have a second form with the group's order added
	// (RFC 8032 section 5.1.7 forbids it).
	signature, _ := base64.RawURLEncoding.DecodeString(part[2])
	add("signature plus the order", part[0]+"."+part[1]+"."+b64(string(plusOrder(signature))))
	// One character changed, anywhere.
	for at := 0; at < len(good); at += 7 {
		if good[at] != '.' {
			add(fmt.Sprintf("character %d", at), flip(good, at))
		}
	}
	return bad
}

func sum512(s string) []byte {
	sum := sha512.Sum512([]byte(s))
	return sum[:]
}

// plusOrder adds the order of the group to the second half of a signature.
func plusOrder(signature []byte) []byte {
	order := []byte{0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 31: 0x10}
	out, carry := append([]byte(nil), signature...), 0
	for n, b := range order {
		sum := int(out[32+n]) + int(b) + carry
		out[32+n], carry = byte(sum), sum>>8
	}
	return out
}

func TestForgeriesAreRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, in *installation) {
		node, who := in.node(), someone()
		good, _ := in.sign(t, node, who)
		kid, key := in.key(t)
		if _, err := node.VerifyToken(t.Context(), forge(header(kid), text(honest(who)), key)); err != nil {
			t.Fatalf("the test's own tokens are not well made: %v", err)
		}
		extra := honest(who)
		extra["locale"], extra["iat"] = "de", start.Unix()+60
		if _, err := node.VerifyToken(t.Context(), forge(header(kid), text(extra), key)); err != nil {
			t.Errorf("a claim that we do not know, and a clock that is ahead: %v", err)
		}
		bad := forgeries(t, in, good)
		if len(bad) < 300 {
			t.Errorf("%d forgeries, want 300", len(bad))
		}
		for name, token := range bad {
			_, err := node.VerifyToken(t.Context(), token)
			refused(t, name, err)
			_, err = in.node().VerifyToken(t.Context(), token) // a node that knows no key yet
			refused(t, name, err)
		}
		if got, err := node.VerifyToken(t.Context(), good); err != nil || got != who {
			t.Errorf("the good one afterwards = %+v, %v", got, err)
		}
	})
}

// FuzzVerify looks for a second text that counts, where one was signed.
func FuzzVerify(f *testing.F) {
	in := install(f, "sqlite")
	node, who := in.node(), someone()
	good, _ := in.sign(f, node, who)
	if _, err := node.VerifyToken(f.Context(), good); err != nil {
		f.Fatal(err)
	}
	part := strings.Split(good, ".")
	for _, seed := range []string{good, good + "=", "", "..", part[0] + "." + part[1] + ".", strings.ReplaceAll(good, ".", "\n."), text(map[string]string{"payload": part[1], "protected": part[0], "signature": part[2]})} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, token string) {
		got, err := node.VerifyToken(t.Context(), token)
		if token == good {
			if err != nil || got != who {
				t.Fatalf("the good one = %+v, %v", got, err)
			}
			return
		}
		if fault, ok := errors.AsType[*fault.Error](err); !ok || fault.Code != "UNAUTHENTICATED" {
			t.Fatalf("%q = %+v, %v", token, got, err)
		}
	})
}
