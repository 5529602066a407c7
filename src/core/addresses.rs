//! The addresses of the servers that form one service, written as one text.
//!
//! They are either whole URLs with commas between them, or one URL with several hosts:
//! `redis://user:password@host1:6379,host2:6379/0`. What surrounds the hosts applies to each of them. A password may
//! contain commas.

/// Returns the URL of each server.
pub fn of_each_server(text: &str) -> Vec<String> {
    let mut urls: Vec<String> = Vec::new();
    for part in text.split(',') {
        match urls.last_mut() {
            Some(url) if !part.contains("://") => {
                url.push(',');
                url.push_str(part);
            }
            _ => urls.push(part.to_owned()),
        }
    }
    urls.iter().flat_map(|url| of_each_host(url)).collect()
}

fn of_each_host(url: &str) -> Vec<String> {
    let scheme = url.find("://").map_or(0, |at| at + "://".len());
    let hosts = url.rfind('@').map_or(scheme, |at| at + 1);
    let end = url[hosts..].find(['/', '?', '#']).map_or(url.len(), |at| hosts + at);
    url[hosts..end].split(',').map(|host| format!("{}{host}{}", &url[..hosts], &url[end..])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_server_has_what_surrounds_the_hosts() {
        for (text, urls) in [
            ("redis://host", vec!["redis://host"]),
            ("redis://:pa,ss@host:1/2", vec!["redis://:pa,ss@host:1/2"]),
            (
                "redis://u:p@a:1,b,[::1]:2/0?x=1",
                vec!["redis://u:p@a:1/0?x=1", "redis://u:p@b/0?x=1", "redis://u:p@[::1]:2/0?x=1"],
            ),
            ("redis://u:p@a:1,redis://v:q@b:2,c:3", vec!["redis://u:p@a:1", "redis://v:q@b:2", "redis://v:q@c:3"]),
            ("redis-sentinel://a,b#main", vec!["redis-sentinel://a#main", "redis-sentinel://b#main"]),
            ("unix:///tmp/redis.sock", vec!["unix:///tmp/redis.sock"]),
            ("redis://a,", vec!["redis://a", "redis://"]),
        ] {
            assert_eq!(of_each_server(text), urls);
        }
    }
}
