# Completion of atelier for fish: atelier completion fish | source
complete -c atelier -f -a '(atelier __complete -- (commandline -cp | string collect) 2>/dev/null)'
