# Shells: source this file, or copy it to /etc/profile.d/larder.sh. curl, wget, git, and most programs obey these.
# Only http can be cached this way: https goes through as a tunnel that nothing can read. For https that Larder
# may keep, use the URL prefix: curl http://127.0.0.1:8098/https/example.org/file
http_proxy=http://127.0.0.1:8098
no_proxy=localhost,127.0.0.1,::1
export http_proxy no_proxy
