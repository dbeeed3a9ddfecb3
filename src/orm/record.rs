//! The one place a record is written down: struct, table, columns, key, docs.

use super::{Cell, CellSource, FieldError, KeyParts, TableSpec};

/// A row of a table. Made by [`record!`](crate::record), not by hand.
pub trait Record: Sized + Send + Sync + 'static {
    /// The primary key: the field itself, or a tuple where it has several.
    type Key: KeyParts + Clone + Send + Sync + 'static;

    /// The table this record lives in.
    const TABLE: TableSpec;

    /// The table, for engines.
    fn table() -> &'static TableSpec;

    /// The value of the primary key.
    fn key(&self) -> Self::Key;

    /// The cells of a row.
    type Cells<'r>: AsRef<[Cell<'r>]> + Into<Vec<Cell<'r>>>;

    /// The cells of all columns, in the order of [`TableSpec::columns`].
    fn cells(&self) -> Self::Cells<'_>;

    /// The same, to be kept.
    fn encode(&self) -> Vec<Cell<'_>> {
        self.cells().into()
    }

    /// From the cells of all columns.
    fn decode<S: CellSource + ?Sized>(row: &S) -> Result<Self, FieldError>;
}

/// Defines a record.
///
/// ```
/// larder::record! {
///     /// A cheese on the shelf.
///     #[derive(Debug, Clone, PartialEq)]
///     pub struct Cheese in "cheeses" [without_rowid], columns CheeseColumns {
///         key {
///             /// What is written on the label.
///             name: String,
///         }
///         /// Grams left.
///         grams: u64 [index, check = "grams >= 0"],
///         /// Who may eat it.
///         eaters: Vec<String> [json],
///     }
/// }
/// assert_eq!(<Cheese as larder::orm::Record>::TABLE.name, "cheeses");
/// let heavy = Cheese::COLUMNS.grams.above(&500);
/// ```
///
/// The parts of `key` are the primary key. After a column's type, in brackets: `json` (kept as a JSON text),
/// `index`, `unique`, `default = "…"`, `check = "…"`, `references = "table(column)"` (the engine holds it to
/// that), `relates = "table(column)"` (the row named need not be there), `version` (counts the row's changes),
/// `member_index = "…"` (of a JSON object), `schema = "…"` (what its values are, as JSON schema); after the table's name: `without_rowid` (for small rows that are
/// found by their key). The lines of docs before a column are its description everywhere.
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $table_doc:literal])+
        #[derive($($derive:path),+ $(,)?)]
        $vis:vis struct $name:ident in $table:literal $([ $($table_opt:ident),* ])?, columns $columns:ident {
            key {
                $( $(#[doc = $key_doc:literal])+ $key:ident : $key_ty:ty
                    $([ $($key_opt:ident $(= $key_val:literal)?),* ])? ),+ $(,)?
            }
            $( $(#[doc = $doc:literal])+ $field:ident : $ty:ty
                $([ $($opt:ident $(= $val:literal)?),* ])? ),* $(,)?
        }
    ) => {
        $(#[doc = $table_doc])+
        #[derive($($derive),+)]
        $vis struct $name {
            $( $(#[doc = $key_doc])+ pub $key: $key_ty, )+
            $( $(#[doc = $doc])+ pub $field: $ty, )*
        }

        #[doc = concat!("The columns of [`", stringify!($name), "`], for filters and orders.")]
        #[derive(Debug, Clone, Copy)]
        $vis struct $columns {
            $( $(#[doc = $key_doc])+ pub $key: $crate::orm::Column<$name, $key_ty>, )+
            $( $(#[doc = $doc])+ pub $field: $crate::orm::Column<$name, $ty>, )*
        }

        impl $name {
            /// The columns, for filters and orders.
            $vis const COLUMNS: $columns = $columns {
                $( $key: $crate::orm::Column::new(stringify!($key), |value| {
                    <$crate::record!(@codec $($($key_opt)*)?) as $crate::orm::Codec<$key_ty>>::encode(value).into_owned()
                }), )+
                $( $field: $crate::orm::Column::new(stringify!($field), |value| {
                    <$crate::record!(@codec $($($opt)*)?) as $crate::orm::Codec<$ty>>::encode(value).into_owned()
                }), )*
            };
        }

        impl $crate::orm::Record for $name {
            type Key = $crate::record!(@tuple $($key_ty),+);

            const TABLE: $crate::orm::TableSpec = $crate::orm::TableSpec::new($table, &[
                $( $crate::orm::ColumnSpec::new::<$key_ty, $crate::record!(@codec $($($key_opt)*)?)>(
                    stringify!($key), concat!($($key_doc, "\n"),+),
                ).key()$($(.$key_opt($($key_val)?))*)?, )+
                $( $crate::orm::ColumnSpec::new::<$ty, $crate::record!(@codec $($($opt)*)?)>(
                    stringify!($field), concat!($($doc, "\n"),+),
                )$($(.$opt($($val)?))*)?, )*
            ]).doc(concat!($($table_doc, "\n"),+))$($(.$table_opt())*)?;

            fn table() -> &'static $crate::orm::TableSpec {
                const { &Self::TABLE }
            }

            fn key(&self) -> Self::Key {
                $crate::record!(@tuple_of self, $($key),+)
            }

            type Cells<'r> = [$crate::orm::Cell<'r>; <$name as $crate::orm::Record>::TABLE.columns.len()];

            fn cells(&self) -> Self::Cells<'_> {
                [
                    $( <$crate::record!(@codec $($($key_opt)*)?) as $crate::orm::Codec<$key_ty>>::encode(&self.$key), )+
                    $( <$crate::record!(@codec $($($opt)*)?) as $crate::orm::Codec<$ty>>::encode(&self.$field), )*
                ]
            }

            fn decode<S: $crate::orm::CellSource + ?Sized>(row: &S) -> Result<Self, $crate::orm::FieldError> {
                let mut position = 0;
                let mut next = || {
                    let here = position;
                    position += 1;
                    here
                };
                Ok(Self {
                    $( $key: <$crate::record!(@codec $($($key_opt)*)?) as $crate::orm::Codec<$key_ty>>::decode_at(row, next())
                        .map_err(|error| error.in_column(stringify!($key)))?, )+
                    $( $field: <$crate::record!(@codec $($($opt)*)?) as $crate::orm::Codec<$ty>>::decode_at(row, next())
                        .map_err(|error| error.in_column(stringify!($field)))?, )*
                })
            }
        }
    };
    (@codec) => { $crate::orm::Plain };
    (@codec json $($rest:ident)*) => { $crate::orm::Json };
    (@codec $other:ident $($rest:ident)*) => { $crate::record!(@codec $($rest)*) };
    (@tuple $only:ty) => { $only };
    (@tuple $($part:ty),+) => { ($($part),+) };
    (@tuple_of $this:ident, $only:ident) => { $this.$only.clone() };
    (@tuple_of $this:ident, $($part:ident),+) => { ($($this.$part.clone()),+) };
}
