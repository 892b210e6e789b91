package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// fromInput is the flag value that reads a secret from standard input. A
// secret on the command line would appear in the shell history and the process
// list.
const fromInput = "-"

// maxSecret is the maximum number of bytes read as a secret.
const maxSecret = 4096

// readPassword returns the password given by a flag. The value "-" reads the
// first line of standard input; without the flag the password is prompted for
// twice.
func (s streams) readPassword(given *string) (string, error) {
	if given != nil && *given != fromInput {
		return *given, nil
	}
	if f, ok := s.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return s.askPassword(f)
	}
	if given == nil {
		return "", usageError{errors.New("missing flags: --password=PASSWORD; --password - reads it from standard input")}
	}
	return s.readLine()
}

// readLine returns the first line of standard input.
func (s streams) readLine() (string, error) {
	line, err := bufio.NewReader(io.LimitReader(s.stdin, maxSecret)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return "", usageError{errors.New("standard input is empty")}
	}
	return line, nil
}

// askPassword prompts for a password twice, without echo.
func (s streams) askPassword(terminal *os.File) (string, error) {
	ask := func(prompt string) (string, error) {
		fmt.Fprint(s.stderr, prompt)
		text, err := term.ReadPassword(int(terminal.Fd()))
		fmt.Fprintln(s.stderr)
		return string(text), err
	}
	password, err := ask("Password: ")
	if err != nil {
		return "", err
	}
	again, err := ask("Repeat the password: ")
	if err != nil {
		return "", err
	}
	if again != password {
		return "", errors.New("the two passwords differ")
	}
	return password, nil
}
