package api_test

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"atelier/internal/account/devicelogin"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/base/sqldb/dbtest"
)

// fakeAccessToken makes an access token as we make them, checksum included.
func fakeAccessToken(prefix string) string {
	body := prefix + ids.Text(43)
	sum := big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))).Text(62)
	return body + strings.Repeat("0", 6-len(sum)) + sum
}

// forger signs what it likes, with our key.
type forger struct {
	kid string
	key ed25519.PrivateKey
}

// forger gives one who got hold of the database and its secret.
func (m *matrix) forger() (f forger) {
	m.t.Helper()
	var sealed string
	m.must(nil, m.db.QueryRow(m.t.Context(), `SELECT id, private FROM signing_key WHERE replaced IS NULL`).Scan(&f.kid, &sealed))
	seed, err := m.site.Keys.BoxFor("signing_key").Open(sealed, "signing_key "+f.kid)
	m.must(nil, err)
	f.key = ed25519.NewKeyFromSeed(seed)
	return f
}

func (f forger) header() string { return `{"alg":"EdDSA","kid":"` + f.kid + `","typ":"JWT"}` }

func (f forger) claims(person, device string, change map[string]any) string {
	now := time.Now()
	c := map[string]any{"iss": "atelier", "aud": "atelier", "sub": person, "device_id": device, "token_use": "id",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": ids.New()}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	text, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// token makes an ID token that is right but for the changes; nil leaves a claim
// out.
func (f forger) token(person, device string, change map[string]any) string {
	return f.sign(f.header(), f.claims(person, device, change))
}

func (f forger) sign(header, claims string) string {
	input := encoded(header) + "." + encoded(claims)
	return input + "." + encoded(string(ed25519.Sign(f.key, []byte(input))))
}

func encoded(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// TestForgedCredentials presents what only looks like a credential, over the
// network: all of it gets one answer.
func TestForgedCredentials(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *sqldb.DB) {
		m := newMatrix(t, db)
		live := m.site.Device(m.ids["anna"], "blender")
		f := m.forger()
		right := []string{m.token, live.Tokens.ID, f.token(m.ids["anna"], live.DeviceID, nil)}
		for _, token := range right {
			if a := m.sendRequest("GET", "/api/v2/me", "Authorization", "Bearer "+token); a.StatusCode != 200 {
				t.Fatalf("a right one = %d %s", a.StatusCode, a.body)
			}
		}
		forged := m.forgeries(f, live)
		if len(forged) < 150 {
			t.Errorf("%d forgeries, want 150", len(forged))
		}
		one := ""
		for name, value := range forged {
			a := m.sendRequest("GET", "/api/v2/me", "Authorization", value)
			body := strings.Replace(string(a.body), a.Header.Get("X-Trace-Id"), "", 1)
			if one == "" {
				one = body
			}
			if e := a.readError(t); a.StatusCode != 401 || e.Code != "UNAUTHENTICATED" || body != one {
				t.Errorf("%s = %d %s, want 401 and what another one gets: %s", name, a.StatusCode, body, one)
			}
		}
		for _, token := range right {
			if a := m.sendRequest("GET", "/api/v2/me", "Authorization", "Bearer "+token); a.StatusCode != 200 {
				t.Errorf("a right one afterwards = %d %s", a.StatusCode, a.body)
			}
		}
		for _, misused := range []string{live.Tokens.ID, m.token, fakeAccessToken("atl_r_"), live.DeviceID} {
			got, body := m.send("POST", "/api/v2/auth/token/refresh", `{"refresh_token":"`+misused+`"}`, http.Header{})
			if got != (outcome{401, "TOKEN_INVALID", ""}) {
				t.Errorf("refreshed with %.10s…: %v %s", misused, got, body)
			}
		}
		m.wrong.show(t)
	})
}

// forgeries are Authorization headers that must not count, by what is wrong with
// them. They are right in every other way: signed with the real key wherever
// the attack does not rule that out.
func (m *matrix) forgeries(f forger, live devicelogin.Login) map[string]string {
	m.t.Helper()
	all := map[string]string{}
	raw := func(name, value string) {
		if _, twice := all[name]; twice || value == "Bearer "+live.Tokens.ID || value == "Bearer "+m.token {
			m.t.Fatalf("the forgery %q is there twice, or none", name)
		}
		all[name] = value
	}
	add := func(name, token string) { raw(name, "Bearer "+token) }
	claims := f.claims(m.ids["anna"], live.DeviceID, nil)
	_, key, err := ed25519.GenerateKey(nil)
	m.must(nil, err)
	theirs := forger{f.kid, key}

	// Other algorithms.
	for _, alg := range []string{"none", "None", "nOnE", "", "HS256", "HS384", "HS512", "RS256", "RS512", "PS256", "ES256", "ES384", "ES512", "ES256K",
		"Ed25519", "eddsa", "EDDSA", "EdDSA ", "Ed448", "dir", "A256GCM"} {
		h := strings.Replace(f.header(), "EdDSA", alg, 1)
		add("alg "+alg+" with our signature", f.sign(h, claims))
		add("alg "+alg+" without a signature", encoded(h)+"."+encoded(claims)+".")
	}
	public := f.key.Public().(ed25519.PublicKey)
	for name, secret := range map[string][]byte{"public key": public, "encoded public key": []byte(encoded(string(public))), "key id": []byte(f.kid), "empty key": nil} {
		input := encoded(strings.Replace(f.header(), "EdDSA", "HS256", 1)) + "." + encoded(claims)
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(input))
		add("HS256 with the "+name, input+"."+encoded(string(mac.Sum(nil))))
	}

	// Other keys, and more in the header than we write.
	add("their signature under our key id", theirs.sign(f.header(), claims))
	add("their signature under theirs", theirs.sign(forger{kid: ids.New()}.header(), claims))
	for _, kid := range []string{"", "0", strings.ToLower(f.kid), f.kid + "0", f.kid[1:], " " + f.kid, "../../../../dev/null", "/dev/null", "' OR 1=1 --", "x' UNION SELECT 'AAAA",
		"https://evil.example/k", "*", "%", "\u0000", strings.Repeat("a", 300)} {
		add("kid "+kid, f.sign(forger{kid: kid}.header(), claims))
	}
	for name, more := range map[string]string{
		"jku": `"jku":"https://evil.example/keys"`, "x5u": `"x5u":"https://evil.example/cert"`, "x5c": `"x5c":["AAAA"]`,
		"jwk":  `"jwk":{"kty":"OKP","crv":"Ed25519","x":"` + encoded(string(key.Public().(ed25519.PublicKey))) + `"}`,
		"crit": `"crit":["exp"],"exp":1`, "b64": `"crit":["b64"],"b64":false`, "zip": `"zip":"DEF"`, "cty": `"cty":"JWT"`, "a second alg": `"alg":"none"`,
	} {
		h := strings.TrimSuffix(f.header(), "}") + "," + more + "}"
		add(name+" with our signature", f.sign(h, claims))
		add(name+" with their signature", theirs.sign(h, claims))
	}
	for _, typ := range []string{"jwt", "at+jwt", "JWE", "refresh", ""} {
		add("typ "+typ, f.sign(strings.Replace(f.header(), "JWT", typ, 1), claims))
	}

	// Other claims, under our signature.
	now := time.Now()
	for name, change := range map[string]map[string]any{
		"iss other": {"iss": "https://evil.example"}, "iss empty": {"iss": ""}, "iss missing": {"iss": nil}, "iss list": {"iss": []string{"atelier"}},
		"aud other": {"aud": "https://evil.example"}, "aud of two": {"aud": []string{"atelier", "evil"}}, "aud none": {"aud": []string{}}, "aud missing": {"aud": nil},
		"use refresh": {"token_use": "refresh"}, "use access": {"token_use": "access"}, "use missing": {"token_use": nil},
		"exp past": {"exp": now.Unix() - 1}, "exp long past": {"exp": 1, "iat": 0}, "exp negative": {"exp": -1}, "exp missing": {"exp": nil}, "exp text": {"exp": "9999999999"}, "exp huge": {"exp": 1e300},
		"iat future": {"iat": now.Unix() + 120}, "iat tomorrow": {"iat": now.AddDate(0, 0, 1).Unix(), "exp": now.AddDate(0, 0, 2).Unix()}, "iat missing": {"iat": nil},
		"sub other": {"sub": ids.New()}, "sub missing": {"sub": nil}, "sub empty": {"sub": ""}, "sub list": {"sub": []string{m.ids["anna"]}}, "sub no id": {"sub": "' OR 1=1 --aaaaaaaaa"},
		"device other": {"device_id": ids.New()}, "device missing": {"device_id": nil}, "device long": {"device_id": live.DeviceID + "0"}, "device NUL": {"device_id": live.DeviceID[:19] + "\x00"},
		"jti missing": {"jti": nil}, "jti empty": {"jti": ""},
	} {
		add(name, f.token(m.ids["anna"], live.DeviceID, change))
	}
	for name, text := range map[string]string{"empty": "", "null": "null", "a list": "[" + claims + "]", "cut": claims[:len(claims)-1], "twice": claims + claims, "not UTF-8": "\xff" + claims} {
		add("claims "+name, f.sign(f.header(), text))
	}

	// Other forms of what is right.
	good, part := live.Tokens.ID, strings.Split(live.Tokens.ID, ".")
	for name, token := range map[string]string{
		"nothing": "", "dots": "..", "two parts": part[0] + "." + part[1], "no signature": part[0] + "." + part[1] + ".", "four parts": good + "." + part[2], "five parts": good + ".AAAA.AAAA",
		"no header": "." + part[1] + "." + part[2], "no claims": part[0] + ".." + part[2], "parts turned": part[1] + "." + part[0] + "." + part[2], "in JSON": `{"payload":"` + part[1] + `","protected":"` + part[0] + `","signature":"` + part[2] + `"}`,
		"padded": good + "==", "a byte more": good + "A", "a sign more": good + "!", "quoted": `"` + good + `"`, "said twice": "Bearer " + good, "two, by comma": good + "," + good, "two, by space": good + " " + good,
		"space before": " " + good, "tab before": "\t" + good, "escaped dots": strings.ReplaceAll(good, ".", "%2E"), "lower case": strings.ToLower(good), "upper case": strings.ToUpper(good),
		"huge": good + strings.Repeat("A", 5000), "huge and signed": f.token(m.ids["anna"], live.DeviceID, map[string]any{"a": strings.Repeat("a", 4000)}), "full-width dot": strings.Replace(good, ".", "．", 1), "not UTF-8": "\xff" + good,
		"half a signature": part[0] + "." + part[1] + "." + part[2][:43], "zeros for a signature": part[0] + "." + part[1] + "." + encoded(strings.Repeat("\x00", 64)),
		"a refresh token": live.Tokens.Refresh, "a device code": m.site.Start("blender").DeviceCode, "a user code": m.site.Start("blender").UserCode, "a device id": live.DeviceID, "a person's id": m.ids["anna"],
		"no such token": fakeAccessToken("atl_p_"), "no such company token": fakeAccessToken("atl_c_"), "a look-alike refresh token": fakeAccessToken("atl_r_"), "another prefix": "atl_c_" + m.token[6:], "no prefix": m.token[6:],
		"a token cut": m.token[:len(m.token)-1], "a token and more": m.token + "0", "a token in upper case": strings.ToUpper(m.token), "a token after space": " " + m.token, "a token's checksum broken": altered(m.token, len(m.token)-1),
		"a token altered": altered(m.token, 20), "two tokens": m.token + " " + m.token, "null": "null", "undefined": "undefined",
	} {
		add(name, token)
	}
	for at := 0; at < len(good); at += 31 {
		if good[at] != '.' {
			add(fmt.Sprint("character ", at), altered(good, at))
		}
	}
	for _, scheme := range []string{"", "Basic ", "Token ", "JWT ", "DPoP ", "MAC ", "Bearer:", "Bearer: ", "Bearer=", "Bearer", "Bearer\t", "Bearers ", "Bearer,", "OAuth ", "Bearer Bearer "} {
		raw("ID token after "+scheme, scheme+good)
		raw("token after "+scheme, scheme+m.token)
	}
	return all
}

// altered changes one character of a token.
func altered(token string, at int) string {
	with := "A"
	if token[at] == 'A' {
		with = "B"
	}
	return token[:at] + with + token[at+1:]
}
