package person

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"atelier/internal/base/fault"
)

// commonText lists the words and patterns that occur most often in leaked
// passwords, one per line in lower case. The list was collected for this
// project. CheckNewPassword ignores case, digits and punctuation around a word,
// leetspeak and repetition (see wordVariants), so each line covers thousands of
// passwords.
//
//go:embed common.txt
var commonText string

var common = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(commonText) {
		all[word] = true
	}
	return all
})

const (
	// minSteps is the minimum number of unpredictable characters in a password.
	// A character is predictable if it follows from the character before it, as
	// in "aaa", "abc" or "qwe".
	minSteps = 4
	// minDigits is the minimum length of a password that consists of digits
	// only.
	minDigits = 12
	// minOwn is the minimum number of letters that a password must contain in
	// addition to parts of the e-mail address and the product's name. Parts of
	// the e-mail address that are shorter than minOwn are ignored.
	minOwn = 4

	productName = "atelier"
)

var (
	errCommon   = fault.New(fault.Invalid, "This password is too common. Choose another one, for example several words.").On("password")
	errPattern  = fault.New(fault.Invalid, "This password follows a common pattern. Choose another one, for example several words.").On("password")
	errPersonal = fault.New(fault.Invalid, "This password is too similar to your e-mail address or to the name of this service. Choose another one, for example several words.").On("password")
)

// CheckNewPassword refuses a password that is too short, or that an attacker
// who knows the person's e-mail address would soon guess.
func CheckNewPassword(password, email string) error {
	if err := checkLength(password); err != nil {
		return err
	}
	lower := strings.ToLower(password)
	switch {
	case isPersonal(lower, email):
		return errPersonal
	case isPattern(lower):
		return errPattern
	case slices.ContainsFunc(wordVariants(lower), func(v string) bool { return common()[v] }):
		return errCommon
	}
	return nil
}

func checkLength(password string) error {
	if !utf8.ValidString(password) || len(password) > maxPassword || utf8.RuneCountInString(password) < minPassword {
		return fault.New(fault.Invalid, fmt.Sprintf("A password must have at least %d characters.", minPassword)).On("password")
	}
	return nil
}

// isPersonal reports whether a lower-case password contains the person's mail
// address, a part of it or the product's name, and fewer than minOwn other
// letters.
func isPersonal(lower, email string) bool {
	email = strings.ToLower(email)
	local, domain, _ := strings.Cut(email, "@")
	domain, _, _ = strings.Cut(domain, ".")
	rest := lower
	for _, name := range []string{email, local, domain, productName} {
		if len(name) >= minOwn {
			rest = strings.ReplaceAll(rest, name, "")
		}
	}
	return rest != lower && utf8.RuneCountInString(keepLetters(rest)) < minOwn
}

// rows are sequences of adjacent keys on QWERTY, QWERTZ and AZERTY keyboards.
var rows = []string{
	"1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm", "qwertzuiop", "yxcvbnm", "azertyuiop", "qsdfghjklm", "wxcvbn",
	"1qaz", "2wsx", "3edc", "4rfv", "5tgb", "6yhn", "7ujm",
}

// isPattern reports whether a lower-case password is a short number, or
// consists mostly of characters that repeat the previous character or are next
// to it in the alphabet or on a keyboard.
func isPattern(lower string) bool {
	if len(lower) < minDigits && strings.Trim(lower, "0123456789") == "" {
		return true
	}
	steps := 0
	var before rune
	for _, r := range lower {
		if !isNextKey(before, r) {
			steps++
		}
		before = r
	}
	return steps < minSteps
}

// isNextKey reports whether r repeats the character before, or is next to it in
// the alphabet or on a keyboard.
func isNextKey(before, r rune) bool {
	if r == before || (r == before+1 || r == before-1) && isAlphanumeric(r) && isAlphanumeric(before) {
		return true
	}
	forth := string([]rune{before, r})
	back := string([]rune{r, before})
	return slices.ContainsFunc(rows, func(row string) bool { return strings.Contains(row, forth) || strings.Contains(row, back) })
}

func isAlphanumeric(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

// leetI and leetL replace digits and punctuation with the letters that they
// resemble ("leetspeak"). A 1 can be an i (leetI) or an l (leetL).
var (
	leetI = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")
	leetL = strings.NewReplacer("0", "o", "1", "l", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")
)

// wordVariants returns the words from which a lower-case password may have been
// derived: without digits and punctuation, with leetspeak decoded, and without
// repetition.
func wordVariants(lower string) []string {
	noLetter := func(r rune) bool { return !unicode.IsLetter(r) }
	plain := strings.TrimFunc(lower, func(r rune) bool { return noLetter(r) && !unicode.IsDigit(r) })
	all := []string{lower, plain}
	for _, text := range []string{lower, strings.TrimRightFunc(lower, noLetter), strings.TrimFunc(lower, noLetter)} {
		for _, read := range []*strings.Replacer{leetI, leetL} {
			all = append(all, keepLetters(read.Replace(text)))
		}
		all = append(all, keepLetters(text))
	}
	for _, text := range all {
		all = append(all, repeatedUnit(text))
	}
	return all
}

func keepLetters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, text)
}

// repeatedUnit returns the shortest string that, repeated, results in text,
// such as "abc" for "abcabc".
func repeatedUnit(text string) string {
	for n := 1; n <= len(text)/2; n++ {
		if len(text)%n == 0 && strings.Repeat(text[:n], len(text)/n) == text {
			return text[:n]
		}
	}
	return text
}
