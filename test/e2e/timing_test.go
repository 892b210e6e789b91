package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb/dbtest"
	"atelier/test/visitor"
)

// refusal is a reason for which requests are refused. Callers must not learn
// which reason it was.
type refusal struct {
	name string
	// send sends a request that is refused for this reason, and returns its answer
	// and how long it took.
	send func() (answer, time.Duration)
}

// timingSamples is how often each reason is tried. By default only the answers
// are compared, because times say nothing on a machine that does other things.
// ATELIER_TEST_TIMING=N is the long form: N tries with each reason, whose times
// must have the same distribution.
func timingSamples(t *testing.T) (n int, measured bool) {
	t.Helper()
	text := os.Getenv("ATELIER_TEST_TIMING")
	if text == "" {
		return 4, false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n, true
}

// TestRefusalsTellNothing proves that refusals do not tell their reason: the
// answers are the same, byte by byte, and in the long form the times are too.
//
// A refresh token that does not work: nobody ever had it, its device was signed
// out, or it was replaced before that. Medians are within half a millisecond,
// and a Kolmogorov-Smirnov test cannot tell the distributions apart.
//
// A password that does not work: it is wrong, or nobody has the e-mail address.
// Medians are within five milliseconds.
func TestRefusalsTellNothing(t *testing.T) {
	samples, measured := timingSamples(t)
	eachAlone(t, measured, func(t *testing.T, s *site) {
		s.env = append(s.env, "ATELIER_HTTP_TRUSTED_PROXIES=127.0.0.0/8", "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0", "ATELIER_TOKENS_REFRESH_ROTATE_AFTER=0s", "ATELIER_CATALOG_BUILTIN=false")
		n := s.serve()
		create := func(i int) {
			s.do("admin", "person", "create", "--email", fmt.Sprintf("anna%d@example.com", i), "--password", password, "--verified")
		}
		create(0)
		t.Run("refresh", func(t *testing.T) {
			compareRefusals(t, samples, measured, limits{median: 500 * time.Microsecond, distribution: true}, refusedRefreshes(t, n))
		})
		t.Run("sign-in", func(t *testing.T) {
			for i := 1; i < peopleGuessedAt(samples); i++ {
				create(i)
			}
			compareRefusals(t, min(samples, 2000), measured, limits{median: 5 * time.Millisecond}, refusedSignIns(t, n))
		})
	})
}

// refusedRefreshes has refresh tokens refused: unknown ones, and those of devices
// that were signed out.
func refusedRefreshes(t *testing.T, n *node) []refusal {
	t.Helper()
	anna := visitor.From(n.url, "10.0.0.1")
	if err := anna.SignIn("anna0@example.com", password); err != nil {
		t.Fatal(err)
	}
	refresh := func(token string) (answer, time.Duration) {
		t.Helper()
		body, err := json.Marshal(map[string]string{"refresh_token": token})
		if err != nil {
			t.Fatal(err)
		}
		return timeRequest(t, "POST", n.url+"/api/v2/auth/token/refresh", string(body), "Content-Type", "application/json")
	}

	var replaced, revoked []string
	for i := range 3 {
		in, err := anna.As(visitor.From(n.url, fmt.Sprintf("10.0.1.%d", i))).Device("")
		if err != nil {
			t.Fatal(err)
		}
		a, _ := refresh(in.Tokens.RefreshToken)
		next := a.want(t, http.StatusOK)["refresh_token"].(string)
		if next == in.Tokens.RefreshToken {
			t.Fatal("the refresh token was not replaced")
		}
		replaced = append(replaced, in.Tokens.RefreshToken)
		revoked = append(revoked, next)
		if got, err := code("POST", n.url+"/api/v2/auth/device/revoke", bearer(in.Tokens.IDToken)...); got != http.StatusNoContent || err != nil {
			t.Fatalf("revoke = %d, %v", got, err)
		}
	}
	prefix := revoked[0][:strings.LastIndex(revoked[0], "_")+1]
	length := len(revoked[0]) - len(prefix)
	return []refusal{
		{"unknown", func() (answer, time.Duration) { return refresh(prefix + ids.Text(length)) }},
		{"revoked", func() (answer, time.Duration) { return refresh(revoked[rand.IntN(len(revoked))]) }},
		{"replaced", func() (answer, time.Duration) { return refresh(replaced[rand.IntN(len(replaced))]) }},
	}
}

// triesOfPerson is how often the tests guess at one person: fewer than the 100
// times an hour after which guesses are slowed down.
const triesOfPerson = 80

// peopleGuessedAt is the number of people that so many guesses need.
func peopleGuessedAt(samples int) int { return min(samples, 2000)/triesOfPerson + 1 }

// refusedSignIns has sign-ins refused: with wrong passwords of people, and with
// e-mail addresses that nobody has. Each comes from another network.
func refusedSignIns(t *testing.T, n *node) []refusal {
	t.Helper()
	networks := 0
	signIn := func(name string) func() (answer, time.Duration) {
		tries := 0
		return func() (answer, time.Duration) {
			t.Helper()
			email := fmt.Sprintf("%s%d@example.com", name, tries/triesOfPerson)
			tries++
			networks++
			from := fmt.Sprintf("10.1.%d.%d", networks/250, networks%250)
			page := timeless(t, "GET", n.url+"/signin", "X-Forwarded-For", from)
			form := url.Values{"email": {email}, "password": {"not the password"}}
			for _, field := range hiddenFields.FindAllStringSubmatch(string(page.body), -1) {
				form.Set(field[1], field[2])
			}
			a, took := timeRequest(t, "POST", n.url+"/signin", form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "X-Forwarded-For", from, "Cookie", cookiesOf(page))
			a.body = bytes.ReplaceAll(a.body, []byte(email), []byte("EMAIL"))
			a.Header.Del("Content-Length") // it counts the digits of the address
			return a, took
		}
	}
	return []refusal{
		{"wrong password", signIn("anna")},
		{"nobody has the address", signIn("nora")},
	}
}

var hiddenFields = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)

// eachAlone is each, one database after the other if times are measured.
func eachAlone(t *testing.T, alone bool, fn func(t *testing.T, s *site)) {
	if !alone {
		each(t, fn)
		return
	}
	for _, engine := range engines() {
		t.Run(engine, func(t *testing.T) {
			s := newSite(t)
			if engine == "postgres" {
				s.database = dbtest.Bare(t, engine)
			}
			fn(t, s)
		})
	}
}

// limits are the largest differences between the times of two refusals.
type limits struct {
	median       time.Duration
	distribution bool // a Kolmogorov-Smirnov test must find no difference
}

// significance is the chance that a service without a leak fails the tests of
// distributions of one comparison of refusals.
const significance = 0.01

// compareRefusals tries the refusals in random order, again and again, and fails
// if their answers differ, or, if that is measured, their times.
func compareRefusals(t *testing.T, samples int, measured bool, most limits, all []refusal) {
	t.Helper()
	const warmUp = 2
	times := make([][]time.Duration, len(all))
	want := ""
	for round := range samples + warmUp {
		for _, i := range rand.Perm(len(all)) {
			a, took := all[i].send()
			got := describeAnswer(a)
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("%s is answered with\n%s\nand others with\n%s", all[i].name, got, want)
			}
			if round >= warmUp {
				times[i] = append(times[i], took)
			}
		}
	}
	if !strings.HasPrefix(want, "4") {
		t.Fatalf("the requests are not refused: %s", want)
	}
	if !measured {
		return
	}

	for i := range all {
		slices.Sort(times[i])
		t.Logf("%-24s %d samples, median %v, quartiles %v and %v, tenth and ninetieth percentiles %v and %v", all[i].name, samples,
			quantileOf(times[i], 0.5), quantileOf(times[i], 0.25), quantileOf(times[i], 0.75), quantileOf(times[i], 0.1), quantileOf(times[i], 0.9))
	}
	for i := 1; i < len(all); i++ {
		difference := (quantileOf(times[i], 0.5) - quantileOf(times[0], 0.5)).Abs()
		distance, chance := compareDistributions(times[0], times[i])
		t.Logf("%s and %s: medians differ by %v, Kolmogorov-Smirnov D = %.4f, p = %.3g", all[0].name, all[i].name, difference, distance, chance)
		if difference > most.median {
			t.Errorf("%s and %s: the medians differ by %v, want at most %v", all[0].name, all[i].name, difference, most.median)
		}
		if least := significance / float64(len(all)-1); most.distribution && chance < least {
			t.Errorf("%s and %s: the distributions of times differ: p = %.3g, want at least %.3g", all[0].name, all[i].name, chance, least)
		}
	}
}

// quantileOf returns a quantile of sorted times.
func quantileOf(sorted []time.Duration, quantile float64) time.Duration {
	return sorted[min(int(float64(len(sorted))*quantile), len(sorted)-1)]
}

// compareDistributions is the two-sample Kolmogorov-Smirnov test of sorted times.
// distance is the largest difference between their distribution functions, and
// chance the probability (asymptotically, with Stephens' correction) of such a
// distance between two samples of one distribution.
func compareDistributions(a, b []time.Duration) (distance, chance float64) {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		at := min(a[i], b[j])
		for i < len(a) && a[i] == at {
			i++
		}
		for j < len(b) && b[j] == at {
			j++
		}
		distance = max(distance, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}

	size := math.Sqrt(float64(len(a)) * float64(len(b)) / float64(len(a)+len(b)))
	lambda := (size + 0.12 + 0.11/size) * distance
	if lambda < 0.2 {
		return distance, 1 // the series below does not converge, and its limit is 1
	}
	sign := 1.0
	for k := 1.0; k <= 100; k++ {
		chance += 2 * sign * math.Exp(-2*k*k*lambda*lambda)
		sign = -sign
	}
	return distance, min(max(chance, 0), 1)
}

// TestCompareDistributions proves that the statistics find a difference where
// there is one, and none where there is none.
func TestCompareDistributions(t *testing.T) {
	t.Parallel()
	ramp := func(from, n int) (all []time.Duration) {
		for i := range n {
			all = append(all, time.Duration(from+i))
		}
		return all
	}
	for _, c := range []struct {
		name             string
		a, b             []time.Duration
		distance, chance float64
	}{
		{"the same", ramp(0, 100), ramp(0, 100), 0, 1},
		{"shifted by a fifth", ramp(0, 100), ramp(20, 100), 0.2, 0.0314},
		{"shifted by a tenth", ramp(0, 1000), ramp(100, 1000), 0.1, 8.12e-5},
		{"apart", ramp(0, 50), ramp(50, 70), 1, 0},
		{"of two sizes", ramp(0, 100), ramp(0, 50), 0.5, 5.13e-8},
	} {
		distance, chance := compareDistributions(c.a, c.b)
		if math.Abs(distance-c.distance) > 1e-9 || math.Abs(chance-c.chance) > 0.02*c.chance+1e-9 {
			t.Errorf("%s: D = %.4f, p = %.3g, want %.4f and %.3g", c.name, distance, chance, c.distance, c.chance)
		}
	}
}

// changing are the parts of an answer that are different each time: the id of the
// request, and tokens against forged forms.
var changing = regexp.MustCompile(`("trace_id": ?"|name="form_token" value="|nonce[-="]+|Error id: )[A-Za-z0-9+/_=-]+`)

// describeAnswer returns an answer without what is different each time.
func describeAnswer(a answer) string {
	header := a.Header.Clone()
	for _, name := range []string{"Date", "X-Request-Id", "X-Trace-Id", "Traceparent", "Set-Cookie"} {
		header.Del(name)
	}
	var text bytes.Buffer
	fmt.Fprintln(&text, a.StatusCode)
	if err := header.Write(&text); err != nil {
		panic(err) // a buffer takes everything
	}
	text.Write(a.body)
	return changing.ReplaceAllString(text.String(), "$1")
}

// timeRequest sends a request on a connection that is open already, if there is
// one, and returns the answer and the time from sending it to its last byte.
func timeRequest(t *testing.T, method, address, body string, header ...string) (answer, time.Duration) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	began := time.Now()
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	took := time.Since(began)
	res.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return answer{res, text}, took
}

// timeless is timeRequest for a request whose time does not matter.
func timeless(t *testing.T, method, address string, header ...string) answer {
	t.Helper()
	a, _ := timeRequest(t, method, address, "", header...)
	return a
}

// cookiesOf returns the header Cookie of a browser that has got this answer.
func cookiesOf(a answer) string {
	var all []string
	for _, c := range a.Cookies() {
		all = append(all, c.Name+"="+c.Value)
	}
	return strings.Join(all, "; ")
}
